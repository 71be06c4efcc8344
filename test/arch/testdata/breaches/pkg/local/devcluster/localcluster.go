// Package devcluster breaks no rule.
package devcluster
