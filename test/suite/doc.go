// Package suite holds the tests of what an installation promises when its parts
// fail, for any way of running the parts: containers (test/containers) or
// processes of this machine (suite/local).
//
//	Provider --> Installation (provider.go, parts.go)
//	                 |
//	                 v
//	               world (world.go) --> load: gangs (load.go, flow.go)
//	                 |              --> faults: one part after the other (suite.go), drawn
//	                 |                  trials (chaos.go, trials.go), an older database (older.go)
//	                 |              --> what queue-manager answers of each gang (watch.go)
//	                 v
//	               check: Postgres, streams and cluster (verify.go)
//
// A Provider starts parts and breaks them; the suite loads them with gangs,
// breaks one part after another, and proves at the end, from Postgres, the
// streams and the cluster, that nothing was lost, doubled, leaked or left half.
package suite
