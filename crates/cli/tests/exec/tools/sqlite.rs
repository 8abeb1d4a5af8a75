//! sqlite with both kinds of journal, several writers at once, and a log that was not written back.

use super::judge::Bench;

/// Four processes add 25 rows each; what they wrote is there, whole.
const WRITERS: &str = "
import os, sqlite3, sys
path, mode = sys.argv[1], sys.argv[2]
def connect():
    connection = sqlite3.connect(path, timeout=120, isolation_level=None)
    connection.execute('PRAGMA journal_mode=' + mode)
    connection.execute('PRAGMA synchronous=NORMAL')
    return connection
connect().execute('CREATE TABLE IF NOT EXISTS t (who, n, text)')
children = []
for who in range(4):
    child = os.fork()
    if child == 0:
        connection = connect()
        for n in range(25):
            connection.execute('INSERT INTO t VALUES (?, ?, ?)', (who, n, 'x' * 500))
        connection.close()
        os._exit(0)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
connection = connect()
assert connection.execute('PRAGMA integrity_check').fetchone()[0] == 'ok'
print(connection.execute('SELECT count(*), count(DISTINCT who) FROM t').fetchone())
";

/// Ends without closing, so that the last rows are in the log alone.
const LEFT_OPEN: &str = "
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute('PRAGMA wal_autocheckpoint=0')
connection.execute(\"INSERT INTO t VALUES (9, 9, 'in the log')\")
os._exit(0)
";

#[test]
fn sqlite_keeps_what_was_committed() {
    for mut bench in Bench::every() {
        bench.shown.home.ok(&["write", "/writers.py", WRITERS]);
        bench.shown.home.ok(&["write", "/left_open.py", LEFT_OPEN]);
        let mut count = 0;
        for _ in 0..2 {
            count += 100;
            for mode in ["delete", "wal"] {
                let text = format!("python3 ../writers.py {mode}.db {mode}");
                let ran = bench.stored_step("/workspace", &text);
                assert_eq!(ran.stdout, format!("({count}, 4)\n"));
            }
        }
        bench.stored_step(
            "/workspace",
            "python3 ../left_open.py wal.db; test -s wal.db-wal",
        );
        bench.still_there(
            "/workspace",
            &[
                "test \"$(sqlite3 wal.db 'SELECT text FROM t WHERE who = 9')\" = 'in the log'",
                "for db in wal delete; do sqlite3 $db.db 'PRAGMA integrity_check' | grep -qx ok; done",
            ],
        );
    }
}
