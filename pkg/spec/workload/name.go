package workload

import "regexp"

// label is a DNS label, so that a name is one token of a subject and no wildcard.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ValidName reports whether name may name a queue, a cluster or a namespace.
func ValidName(name string) bool { return label.MatchString(name) }
