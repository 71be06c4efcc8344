// Package simulation runs a log of jobs through Muster's own decisions and measures how
// long the jobs waited.
//
// Jobs are submitted and end as in the log, through package world, so it is the state
// and admission's Decide that choose who starts when. There is no other scheduler in here.
// Play takes any jobs, nodes and queues. Run takes a log of parallel jobs in the Standard
// Workload Format: each job is a gang of one pod per processor that it asked for, on nodes
// that hold one such pod each; its requested time is its declared run time.
//
// Rules, as in the published experiments on such logs (Gaussier et al., SC'15): jobs that
// ask for more processors than there are, or whose run time or requested time is not known,
// are left out and counted; a job that ran longer than it asked for is cut there; at equal
// times submissions come before ends, in the order of the log.
//
// It reads no clock and has no effects: the same log gives the same result.
package simulation
