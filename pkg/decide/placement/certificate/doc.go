// Package certificate verifies verdicts of package placement without its solver: that
// places obey every constraint, and that a workload cannot fit. It is plain, not fast.
//
// A Document is a proof that users can keep and verify without Muster. Make makes one of
// a verdict and replaces the names that its reader must not learn; Read and Verify trust
// nothing of it, and their cost is bounded. Check and Valid verify a bare verdict against
// nodes, for tests.
package certificate
