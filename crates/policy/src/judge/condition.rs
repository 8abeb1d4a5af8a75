//! Conditions and expressions: `[[ … ]]` and `((…))`.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate};

use super::state::Judge;
use crate::programs::{Category, evaluates, may_hold_commands};
use crate::shell::{Mode, Unreadable, read};

impl Judge {
    pub fn test(&mut self, test: &ExtendedTestExpr) -> Result<(), Unreadable> {
        match test {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a)?;
                self.test(b)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner)
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                self.tested(&word.value)?;
                self.tested_name(predicate, &word.value)
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                for word in [left, right] {
                    self.tested(&word.value)?;
                    if compares_numbers(predicate) {
                        self.evaluated(&word.value, Mode::Pattern)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// A word inside `[[ ]]`; arithmetic tests evaluate even quoted text.
    fn tested(&mut self, source: &str) -> Result<(), Unreadable> {
        // A pattern may hold a process substitution, which the parser takes for plain text.
        if source.contains("<(") || source.contains(">(") {
            return Err(Unreadable);
        }
        for word in self.words(source, Mode::Pattern)? {
            if may_hold_commands(&word) {
                self.remark(source, Category::Unknown);
            }
        }
        self.remark("[[", Category::ReadOnly);
        Ok(())
    }

    /// `[[ -v name ]]` evaluates a subscript.
    fn tested_name(&mut self, test: &UnaryPredicate, source: &str) -> Result<(), Unreadable> {
        use UnaryPredicate::{ShellVariableIsSetAndAssigned, ShellVariableIsSetAndNameRef};
        if !matches!(
            test,
            ShellVariableIsSetAndAssigned | ShellVariableIsSetAndNameRef
        ) {
            return Ok(());
        }
        for word in read(source, &self.pieces, &self.vars, Mode::Pattern)?.words {
            self.rely(evaluates("unset", &[word]), source);
        }
        Ok(())
    }

    pub fn expression(&mut self, source: &str) -> Result<(), Unreadable> {
        self.evaluated(source, Mode::Text)?;
        self.remark("((", Category::ReadOnly);
        Ok(())
    }
}

/// Whether a comparison evaluates both sides.
fn compares_numbers(predicate: &BinaryPredicate) -> bool {
    use BinaryPredicate::*;
    matches!(
        predicate,
        ArithmeticEqualTo
            | ArithmeticNotEqualTo
            | ArithmeticLessThan
            | ArithmeticLessThanOrEqualTo
            | ArithmeticGreaterThan
            | ArithmeticGreaterThanOrEqualTo
    )
}
