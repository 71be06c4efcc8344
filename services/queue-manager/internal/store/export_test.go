package store

// MigrateTo is for tests of migrations.
var MigrateTo = migrateTo

// Silence is how long a leader may say nothing.
const Silence = silence
