package store

// MigrateTo is for tests of migrations.
var MigrateTo = migrateTo
