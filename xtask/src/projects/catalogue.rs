//! The projects: where each comes from, what makes it whole without a network, and what its tests are.

/// Something that people work on.
pub struct Project {
    pub name: &'static str,
    pub source: Source,
    /// Programs that it needs, each with the package that has it.
    pub needs: &'static [(&'static str, &'static str)],
    /// Run once in its directory, with a network: everything that the tests need is below it afterwards.
    pub prepare: &'static str,
    /// Run in its directory without a network, natively and in a vault.
    pub test: &'static str,
    pub tally: Tally,
}

/// Where its files come from: package managers, asked by name.
pub enum Source {
    /// A crate with its tests, by cargo.
    Crate(&'static str),
    /// A source distribution with its tests, by pip.
    Sdist(&'static str),
    /// Files of ours that use a package of npm: published packages come without their tests.
    Files(&'static [(&'static str, &'static str)]),
    /// A source package of the distribution, by apt.
    Debian(&'static str),
}

/// How the results are read from what the tests print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// The lines `test result:` of cargo, and tests that failed.
    Cargo,
    /// The last line of pytest, and tests that failed.
    Pytest,
    /// The counts of `node --test`.
    Node,
    /// Lines that begin so, as they are.
    Lines(&'static [&'static str]),
}

/// A virtual environment of wheels that lie beside the tests.
macro_rules! pytest {
    ($packages:literal, $options:literal) => {
        concat!(
            "python3 -m venv .venv && .venv/bin/pip install --quiet --no-index --find-links wheels ",
            $packages,
            " && .venv/bin/python -m pytest -q -rf -p no:cacheprovider ",
            $options
        )
    };
}

macro_rules! wheels {
    ($packages:literal) => {
        concat!(
            "python3 -m pip download --quiet --only-binary :all: --dest wheels ",
            $packages
        )
    };
}

pub const PROJECTS: &[Project] = &[
    Project {
        name: "ripgrep",
        source: Source::Crate("ripgrep"),
        needs: &[("cargo", "cargo"), ("gcc", "gcc")],
        prepare: "mkdir -p .cargo && cargo vendor --quiet > .cargo/config.toml",
        test: "cargo test --offline 2>&1",
        tally: Tally::Cargo,
    },
    Project {
        name: "flask",
        source: Source::Sdist("flask"),
        needs: PYTHON,
        prepare: wheels!("flask 'pytest<9' python-dotenv asgiref"),
        test: pytest!("flask 'pytest<9' python-dotenv asgiref", "tests"),
        tally: Tally::Pytest,
    },
    Project {
        name: "httpx",
        source: Source::Sdist("httpx"),
        needs: PYTHON,
        prepare: wheels!(
            "'httpx[brotli,cli,http2,socks,zstd]' pytest trio trustme uvicorn chardet"
        ),
        test: pytest!(
            "'httpx[brotli,cli,http2,socks,zstd]' pytest trio trustme uvicorn chardet",
            "tests"
        ),
        tally: Tally::Pytest,
    },
    Project {
        name: "black",
        source: Source::Sdist("black"),
        needs: PYTHON,
        prepare: wheels!("'black[colorama,d]' pytest pytest-xdist"),
        test: pytest!("'black[colorama,d]' pytest pytest-xdist", "tests"),
        tally: Tally::Pytest,
    },
    Project {
        name: "express",
        source: Source::Files(&[
            ("package.json", include_str!("express/package.json")),
            ("serves.test.js", include_str!("express/serves.test.js")),
        ]),
        needs: NODE,
        prepare: "npm install --silent --cache .npm-cache && rm -rf node_modules",
        test: "npm ci --silent --offline --cache .npm-cache && node --test --test-reporter=tap",
        tally: Tally::Node,
    },
    Project {
        name: "vite",
        source: Source::Files(&[
            ("package.json", include_str!("vite/package.json")),
            ("index.html", include_str!("vite/index.html")),
            ("main.js", include_str!("vite/main.js")),
        ]),
        needs: NODE,
        prepare: "npm install --silent",
        test: "node_modules/.bin/vite build && find dist -type f -exec sha256sum {} + | sed 's/^/built: /'",
        tally: Tally::Lines(&["built: "]),
    },
    Project {
        name: "redis",
        source: Source::Debian("redis"),
        needs: &[("gcc", "gcc"), ("make", "make"), ("tclsh", "tcl")],
        prepare: "true",
        test: "make -j2 MALLOC=libc > /dev/null 2>&1 && ./runtest --clients 2 --tags '-slow -large-memory' --skipunit unit/oom-score-adj 2>&1",
        tally: Tally::Lines(&[
            "\\o/ All tests passed",
            "[err]",
            "!!! WARNING The following tests failed",
        ]),
    },
    Project {
        name: "sqlite",
        source: Source::Debian("sqlite3"),
        needs: &[
            ("gcc", "gcc"),
            ("make", "make"),
            ("tclsh", "tcl"),
            ("tclConfig", "tcl-dev"),
        ],
        prepare: "true",
        test: "./configure > /dev/null && make -j2 testfixture > /dev/null 2>&1 && ./testfixture test/veryquick.test 2>&1",
        tally: Tally::Lines(&["!", "SQLite "]),
    },
    Project {
        name: "postgresql",
        source: Source::Debian("postgresql-15"),
        needs: &[
            ("gcc", "gcc"),
            ("make", "make"),
            ("bison", "bison"),
            ("flex", "flex"),
            ("perl", "perl"),
        ],
        prepare: "true",
        test: "./configure --without-readline --without-zlib > /dev/null && make -j2 > /dev/null 2>&1 && make check 2>&1",
        tally: Tally::Lines(&[" All ", "not ok", "     ", "test ", "initdb: error"]),
    },
];

const PYTHON: &[(&str, &str)] = &[("python3", "python3"), ("python3", "python3-venv")];
const NODE: &[(&str, &str)] = &[("node", "nodejs"), ("npm", "npm")];
