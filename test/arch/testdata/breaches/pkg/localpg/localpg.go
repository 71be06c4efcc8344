// Package localpg breaks no rule.
package localpg
