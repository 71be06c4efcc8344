package store

import "context"

// MigrateTo is for tests of migrations.
var MigrateTo = migrateTo

// Setting returns what a session has.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	return value, s.pool.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
}

// TimelineOf is for tests of names that no server has today.
var TimelineOf = timelineOf
