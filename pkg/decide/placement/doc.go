// Package placement finds a node for each pod of a gang, or proves that there are not
// enough.
//
// A Fleet is the nodes of one cluster with what is free on them. It is pure: no context,
// clock, logger, randomness or I/O; the same fleet gives the same verdict on any
// machine, in whatever order it was built. It does not know queues, quota or priorities
// (package admission), and does not carry out a plan.
//
// # Stages
//
// Solve goes through these stages, and ends with the first answer:
//
//	newProblem    problem.go      kinds of pods, rules on domains
//	countAlone    solve.go        for large pod sets: room for each set alone (Counted)
//	pack          pack.go         the pod sets one after the other, greedily: Fits
//	  gather      groups.go       the pod sets of a group, near each other
//	  fillOneDomain onedomain.go  the pod sets of a rule, in one domain
//	  fill        domains.go      one pod set, on nodes or domains
//	    placeOne  spots.go        the node of one pod
//	    put       bins.go         notes what the pods of this gang take of the node
//	countAlone    solve.go        the same for all pod sets (Counted)
//	sumUp         solve.go        each resource in sum (Summed)
//	search.run    exact.go        exact, for each set with a rule, then all (Searched),
//	                              on the data and the budget of search_data.go:
//	  frontiers   frontier.go     over the tree of domains (tree.go), by rules (rules.go)
//	  podSearch   pod_search.go   pod by pod, where domains overlap
//	  assign      assign.go       the nodes of the counts that were found
//	shortage      shortage.go     what a gang that does not fit lacks, for the reason
//	                              (sentence.go)
//
// How many pods of a set go to a node is decided below pack, or else in the search. Which
// pod goes there is decided later, by the dispatcher (gang.Pins); in queues that trust
// kube-scheduler, by that. The other files keep the
// fleet: nodes, groups and filters (node.go, fleet.go, class.go, filter.go), what gangs
// use (allocate.go), the devices that packing keeps for others (demand.go), what-ifs
// (savepoint.go), which gangs do not fit (unschedulable.go), which of them may after
// nodes have changed (requeue.go), what is free in sum (sum.go), and what no empty node
// offers (offers.go).
//
// In this order of the files a function calls only those of its own file and of files
// that follow:
//
//	offers, reliefs, sum, allocate, savepoint, snapshot, obeys, solve
//	exact, pod_search, tree, frontier, rules, assign, search_data
//	shortage, verdict, sentence
//	pack, groups, onedomain, domains, spots, bins
//	topology, fleet, requeue, unschedulable, demand, problem, binds
//	class, filter, ports, node, vector
//
// # Nodes
//
// Nodes that give every selector, affinity and set of tolerations in use the same answer
// are a class; nodes of a class with the same free amounts are a group. A class keeps
// its groups in order, the fullest first. An event on a node costs O(log groups), a new
// selector O(nodes) once.
//
// # Packing
//
// Pod sets are packed in the order of what they ask (devices, then CPU, memory and the
// rest; the largest first). Each pod goes onto the node where it strands the fewest devices,
// by the measure of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023): idle
// devices that the typical pods, the most frequent of those that run and wait, cannot use. Ties go to the fullest node,
// then to the first by name. Pods without devices avoid nodes that have some. Only the
// first groups of each class are compared, so packing costs O(pods log groups) on any
// number of nodes. A pod set with a topology is packed into few domains: whole domains
// while they fill, then the smallest that takes the rest; O(nodes).
//
// # Proof
//
// When packing fails the answer is computed exactly. For each pod set alone it is the
// sum over groups of how many of its pods a node takes; O(groups). Then resources are
// compared in sum. Then comes a search that is exact for mixed gangs and rules on
// domains: a dynamic program over the tree of domains, whose states are numbers of pods
// per pod set. A node, a domain and the fleet each have a Pareto frontier of largest
// count vectors; that of a domain is the sum of those within, less what its rules
// forbid. Domains and nodes that are alike are computed once and multiplied by doubling.
// With k pod sets of at most c pods a frontier has at most (c+1)^(k-1) members, so the
// cost is polynomial in pods and logarithmic in nodes that are alike, and exponential
// only in the number of different pod sets, for which there is a budget of steps.
// Topology spread is tried once for each least number that a domain may have. Rules on
// labels whose domains overlap, such as zones and models of GPUs, cannot be added up;
// there a search places pod by pod within the budget.
//
// So Fits and DoesNotFit are exact, and Unknown means a spent budget. A certificate
// names pod sets that cannot be placed together and how to verify that; package
// certificate verifies it without this package's solver.
package placement
