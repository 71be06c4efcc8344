// Package pgx stands for the real one.
package pgx
