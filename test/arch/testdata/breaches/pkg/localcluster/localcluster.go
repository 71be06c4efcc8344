// Package localcluster breaks no rule.
package localcluster
