// Package forecast keeps estimates of when waiting workloads start, for the answers of
// queue-manager.
//
//	Run, every Interval:  learn  --> snapshot --> play forward --> estimates
//	                      ended      Postgres     estimate.         of those that wait
//	                                              FastForward
//	                        |                                          |
//	                        +------------- score those that started <--+
//
// It runs in every queue-manager, leader or standby, beside the term and never in its loop:
// it reads Postgres as any reader does, and writes nothing. What it has learned is gone with
// the process and learned again from the archive. The estimates themselves are package
// estimate's. It is not for decisions: nothing is admitted by an estimate.
package forecast
