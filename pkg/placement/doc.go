// Package placement finds a node for each pod of a gang, or proves that there
// are not enough.
//
// A Fleet holds the nodes of one cluster with what is free on them. It is pure:
// no context, clock, logger, randomness or I/O; the same fleet gives the same
// verdict on any machine, in whatever order it was built. It does not know
// queues, quota or priorities (package admission), and does not carry a plan
// out.
//
// # Nodes
//
// Nodes that give every selector, affinity and set of tolerations in use the
// same answer are a class; nodes of a class with the same free are a group. A
// class keeps its groups in order, the fullest first. An event on a node costs
// O(log groups), a selector not seen before O(nodes) once.
//
// # Packing
//
// A gang is first packed: pod sets in the order of what they ask of the dearest
// resource, each pod onto the node where it strands the fewest devices, by the
// measure of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023): idle
// devices that the typical pods, those most frequent among what runs and waits,
// cannot use. Ties go to the fullest node, then to the first by name. Pods
// without devices keep off nodes that have some. Only the first groups of each
// class are weighed, so this costs O(pods log groups) on any number of nodes. A
// pod set with a topology is packed into as few domains as can be: whole domains
// while they fill, then the smallest that takes the rest; O(nodes).
//
// # Proof
//
// When packing fails the answer is sought exactly. Each pod set alone has a
// closed answer, the sum over groups of how many of its pods a node takes;
// O(groups). Then resources are compared in sum. Then comes a search that is
// exact for mixed gangs and rules on domains: a dynamic program over the tree
// of domains, whose states are numbers of pods per pod set. A node, a domain and
// the fleet each have a frontier of largest numbers; that of a domain is the sum
// of those within, less what its rules forbid. Domains and nodes that are alike
// are computed once and multiplied by doubling. With k pod sets of at most c
// pods a frontier has at most (c+1)^(k-1) members, so the cost is polynomial in
// pods and logarithmic in nodes that are alike, and exponential only in the
// number of different pod sets, for which there is a budget of steps. Topology
// spread is tried once for each least number that a domain may have. Rules on
// labels whose domains overlap, such as zones and models of GPUs, cannot be
// added up; there a search places pod by pod within the budget.
//
// So Fits and DoesNotFit are exact, and Unknown means a spent budget. A
// certificate names pod sets that cannot be placed together and how to see it;
// package certificate verifies it without this package's solver.
package placement
