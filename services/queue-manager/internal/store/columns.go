package store

import (
	"fmt"
	"strings"
	"time"
)

// column is a column of a statement: its name, its type in Postgres, and its values, a
// slice with one for each row. The slice is never nil: unnest of NULL has no length, and
// Postgres would fill the rows of this column with NULL.
type column struct {
	name, sqlType string
	values        any
}

// columnOf returns a column with a value of each row.
func columnOf[Row, Value any](name, sqlType string, rows []Row, value func(Row) Value) column {
	values := make([]Value, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return column{name, sqlType, values}
}

// uuidColumn returns a column of UUIDs given as texts.
func uuidColumn[Row any, ID ~string](name string, rows []Row, value func(Row) ID) column {
	values := make(uuids, len(rows))
	for i, row := range rows {
		values[i] = uuidText(value(row))
	}
	return column{name, "uuid", values}
}

// jsonColumn returns a column of JSON, NULL where there is no value.
func jsonColumn[Row, Value any](name string, rows []Row, value func(Row) (v Value, given bool)) column {
	return columnOf(name, "jsonb", rows, func(row Row) *string {
		v, given := value(row)
		if !given {
			return nil
		}
		return orNull(encoded(v))
	})
}

// timeColumn returns a column of times, NULL where the time is zero.
func timeColumn[Row any](name string, rows []Row, value func(Row) time.Time) column {
	return columnOf(name, "timestamptz", rows, func(row Row) *time.Time { return timeOrNull(value(row)) })
}

// placeColumn returns a column "place" that numbers n rows.
func placeColumn(n int) column {
	places := make([]int32, n)
	for i := range places {
		places[i] = int32(i)
	}
	return column{"place", "int", places}
}

// parameters collects the values of a statement's parameters, which are numbered from $1.
type parameters []any

// add returns the placeholder of a further value.
func (p *parameters) add(value any) string {
	*p = append(*p, value)
	return fmt.Sprintf("$%d", len(*p))
}

// rows returns a table expression of the columns, such as
// "unnest($1::uuid[], $2::int[]) AS u (id, gang)", and adds their values.
func (p *parameters) rows(alias string, columns []column) string {
	arrays := make([]string, len(columns))
	for i, c := range columns {
		arrays[i] = p.add(c.values) + "::" + c.sqlType + "[]"
	}
	return fmt.Sprintf("unnest(%s) AS %s (%s)", strings.Join(arrays, ", "), alias, names(columns))
}

// names returns the names of columns for a statement.
func names(columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name
	}
	return strings.Join(list, ", ")
}

// assignments returns "a = u.a, b = u.b" for an UPDATE from the rows of an alias.
func assignments(alias string, columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name + " = " + alias + "." + c.name
	}
	return strings.Join(list, ", ")
}
