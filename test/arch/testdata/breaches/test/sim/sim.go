// Package sim breaks no rule.
package sim
