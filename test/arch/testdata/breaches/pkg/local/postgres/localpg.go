// Package postgres breaks no rule.
package postgres
