//! Conditions and expressions: `[[ … ]]` and `((…))`.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate};

use super::state::Judge;
use crate::programs::{Category, evaluates, may_hold_commands};
use crate::shell::{Mode, Unreadable, read};

impl Judge {
    pub fn judge_test(&mut self, test: &ExtendedTestExpr) -> Result<(), Unreadable> {
        let mut left = vec![test];
        while let Some(test) = left.pop() {
            match test {
                ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => left.extend([&**b, a]),
                ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                    left.push(inner);
                }
                ExtendedTestExpr::UnaryTest(predicate, word) => {
                    self.judge_test_word(&word.value)?;
                    self.judge_tested_name(predicate, &word.value)?;
                }
                ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                    for word in [left, right] {
                        self.judge_test_word(&word.value)?;
                        if compares_numbers(predicate) {
                            self.evaluate(&word.value, Mode::Pattern)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Judges a word inside `[[ ]]`. Arithmetic tests evaluate even quoted text.
    fn judge_test_word(&mut self, source: &str) -> Result<(), Unreadable> {
        // A pattern may have a process substitution, which the parser takes for plain text.
        if source.contains("<(") || source.contains(">(") {
            return Err(Unreadable);
        }
        for word in self.read_words(source, Mode::Pattern)? {
            if may_hold_commands(&word) {
                self.push_finding(source, Category::Unknown);
            }
        }
        self.push_finding("[[", Category::ReadOnly);
        Ok(())
    }

    /// `[[ -v name ]]` evaluates a subscript.
    fn judge_tested_name(&mut self, test: &UnaryPredicate, source: &str) -> Result<(), Unreadable> {
        use UnaryPredicate::{ShellVariableIsSetAndAssigned, ShellVariableIsSetAndNameRef};
        if !matches!(
            test,
            ShellVariableIsSetAndAssigned | ShellVariableIsSetAndNameRef
        ) {
            return Ok(());
        }
        for word in read(source, &self.pieces, &self.vars, Mode::Pattern)?.words {
            self.assume(evaluates("unset", &[word]), source);
        }
        Ok(())
    }

    pub fn judge_expression(&mut self, source: &str) -> Result<(), Unreadable> {
        self.evaluate(source, Mode::Text)?;
        self.push_finding("((", Category::ReadOnly);
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
