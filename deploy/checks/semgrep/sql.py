# What the rule finds, and what it leaves alone.
def bad(tx, name, names, number):
    # ruleid: sql-with-values-in-its-text
    tx.execute(f"SELECT 1 FROM account WHERE name = '{name}'")
    # ruleid: sql-with-values-in-its-text
    tx.execute(text(f"SELECT 1 FROM account WHERE id = {names[0]} AND x"))
    # ruleid: sql-with-values-in-its-text
    tx.exec_driver_sql("SELECT 1 FROM account WHERE name = " + name)
    # ruleid: sql-with-values-in-its-text
    tx.exec_driver_sql("SELECT 1 FROM account WHERE name = '%s'" % name)
    # ruleid: sql-with-values-in-its-text
    cursor.execute("SELECT 1 FROM {}".format(name))
    # ruleid: sql-with-values-in-its-text
    tx.execute(text(f"SET LOCAL statement_timeout = {number:d}"))
    # ruleid: sql-with-values-in-its-text
    tx.execute(f"SELECT 1 FROM account WHERE name = '{name!s}'")
    # ruleid: sql-with-values-in-its-text
    tx.execute(f"SELECT 1 FROM account WHERE name = {name!r:>20} AND id = %s", (number,))
    # ruleid: sql-with-values-in-its-text
    tx.execute(f"SELECT '{{{number:d}}}'")
    # ruleid: sql-with-values-in-its-text
    tx.execute("SELECT 1 FROM account " f"WHERE id = {number:d}")
    tx.execute(
        # ruleid: sql-with-values-in-its-text
        text(f"""
            SELECT {COLUMNS} FROM account
            WHERE id = {number:d}
        """)
    )


def good(self, tx, name):
    # ok: sql-with-values-in-its-text
    tx.execute(text("SELECT 1 FROM account WHERE name = :name"), {"name": name})
    # ok: sql-with-values-in-its-text
    tx.execute(f"SELECT {COLUMNS} FROM account WHERE name = %s", (name,))
    # ok: sql-with-values-in-its-text
    tx.execute(text(f"SELECT position FROM {self.schema}.feed_position"))
    # ok: sql-with-values-in-its-text
    tx.execute(text(f"SELECT position FROM {self.schema!s}.feed_position WHERE kept < {KEEP_DAYS:d} AND id = '{{x:1}}'"))
