"""Thousands of rows in one statement, to a database's driver as it is: SQLAlchemy's own work for each took most of a
fold's time.

SQLite's driver takes a list of rows. PostgreSQL takes them as one JSON text, which its server reads on another core;
there a statement must not meet one key twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

Row = Mapping[str, Any]
NOTHING: Mapping[str, str] = {}
TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "FLOAT": "double precision", "BOOLEAN": "boolean"}
"""PostgreSQL's names; all others are text."""
KEYS_AT_A_TIME = 10_000

_lists = msgspec.json.Decoder(list[Any])


def insert_rows(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Row],
    *,
    keys: Sequence[str] = (),
    grown: Mapping[str, str] = NOTHING,
) -> None:
    """Insert rows that have each of the table's columns.

    Args:
        connection: of SQLite or PostgreSQL.
        table: into which.
        rows: with different `keys` each.
        keys: the columns that a row may have in common with one that is there: then that one is changed.
        grown: what becomes of its columns, in SQL; `excluded` is the new row.
    """
    if not rows:
        return
    dialect = connection.dialect.name
    statement = insert_statement(dialect, table, tuple(keys), tuple(grown.items()))
    if dialect == "sqlite":
        connection.exec_driver_sql(statement, [dict(row) for row in rows])
    else:
        connection.exec_driver_sql(statement, (msgspec.json.encode(rows).decode(),))


@cache
def insert_statement(dialect: str, table: sa.Table, keys: tuple[str, ...], grown: tuple[tuple[str, str], ...]) -> str:
    """The statement of `insert_rows`."""
    names = [column.name for column in table.columns]
    if dialect == "sqlite":
        values = f"VALUES ({', '.join(f':{name}' for name in names)})"
    else:
        types = ", ".join(f"{_quoted(column.name)} {_type_of(column)}" for column in table.columns)
        quoted = ", ".join(map(_quoted, names))
        values = f"SELECT {quoted} FROM json_to_recordset(%s::json) AS new({types})"  # noqa: S608 - our own names
    insert = f"INSERT INTO {table.name} ({', '.join(map(_quoted, names))}) {values}"
    if not keys:
        return insert
    changes = ", ".join(f"{name} = {value}" for name, value in grown)
    return f"{insert} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


def whole_sum(dialect: str, table: str, name: str) -> str:
    """What becomes of a column to which a new row's is added, in SQL: a whole number, or the statement fails.

    SQLite makes a sum beyond 63 bits a number with a fraction, without a word; here it is NULL, which the column
    refuses. PostgreSQL refuses it by itself.
    """
    added = f"{table}.{name} + excluded.{name}"
    return f"CASE typeof({added}) WHEN 'integer' THEN {added} END" if dialect == "sqlite" else added


def rows_among(
    connection: sa.Connection, query: sa.Select[Any], column: sa.ColumnElement[str], keys: Sequence[str]
) -> Iterator[Sequence[Any]]:
    """The rows of a query whose column has one of the keys."""
    for start in range(0, len(keys), KEYS_AT_A_TIME):
        some = list(keys[start : start + KEYS_AT_A_TIME])
        if connection.dialect.name == "sqlite":
            each = sa.func.json_each(msgspec.json.encode(some).decode()).table_valued("value")
            found: sa.ColumnElement[bool] = column.in_(sa.select(each.c.value))
        else:
            found = column == sa.any_(sa.literal(some, sa.ARRAY(sa.Text)))
        yield from connection.execute(query.where(found))


def _quoted(name: str) -> str:
    return f'"{name}"'


def _type_of(column: sa.Column[Any]) -> str:
    return next((known for name, known in TYPES.items() if str(column.type).startswith(name)), "text")


def listed(dialect: str, columns: Sequence[sa.ColumnElement[Any]]) -> list[sa.ColumnElement[Any]]:
    """In a question by groups: the values of all rows of a group, of each column in the same order.

    Where a report has a line for nearly each row, most of its time went into making rows of what they have in common.
    """
    if dialect == "sqlite":
        return [sa.func.json_group_array(column) for column in columns]
    # Without a type: the driver has read the lists already.
    return [sa.func.array_agg(column, type_=sa.types.NullType()) for column in columns]


def with_lists(rows: Iterable[Sequence[Any]], count: int) -> Iterator[Sequence[Any]]:
    """The rows of such a question, whose last values are so many lists."""
    for row in rows:
        if isinstance(row[-1], str):  # SQLite has no other lists
            yield (*row[:-count], *map(_lists.decode, row[-count:]))
        else:
            yield row
