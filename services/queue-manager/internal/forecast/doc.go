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
// it reads Postgres as any reader does. The queue-manager that leads keeps its estimates and
// their scores there, in transactions of their own, so that they outlive it. Run times are
// learned again from the archive by each process. The estimates themselves are package
// estimate's. It is not for decisions: nothing is admitted by an estimate.
package forecast
