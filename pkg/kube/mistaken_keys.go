package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Prefix begins Muster's labels and annotations.
const Prefix = "muster.dev/"

// Labels that name the queue and the priority class of an object.
const (
	QueueNameLabel     = "muster.dev/queue-name"
	PriorityClassLabel = "muster.dev/priority-class"
)

// mostNamed bounds the keys of an object that are named, and the letters of a name that is
// compared.
const (
	mostNamed    = 8
	mostCompared = 64
)

// forUsers has the keys that a manifest may have, and in which field of its metadata.
func forUsers() map[string]string {
	keys := map[string]string{QueueNameLabel: "labels", PriorityClassLabel: "labels"}
	for _, key := range []string{
		ReadyDeadlineKey, OnPodLossKey, StartKey, CheckpointGraceKey, CheckpointIntervalKey, MaxRunTimeKey, RunTimeKey, IdleTimeKey, ClustersKey, PreferClustersKey,
		LastUsedKey, LastCheckpointKey, AutoscalingKey,
	} {
		keys[key] = "annotations"
	}
	return keys
}

// stamped are the keys that Muster writes on objects: one that was exported from a cluster
// has them, and they do nothing.
func stamped() []string {
	return []string{
		WorkloadLabel, ClusterLabel, AttemptLabel, PodSetLabel, PlaceholderLabel, PlaceholderClusterLabel, EpochKey, EvictingAtKey, TraceparentKey, SuspendedUIDKey, StateKey, ReasonKey, StartsKey, PositionKey, CarriedFromKey, CarriedDigestKey, HomeKey, PlaceKey, StaleKey,
		IdentityKey, Prefix + "user", Prefix + "user-uid", Prefix + "user-groups",
	}
}

// MistakenKeys returns which labels and annotations of an object begin as Muster's do and do
// nothing, because of their name or because they are in the wrong field.
func MistakenKeys(tree map[string]any) (warnings []string) {
	metadata, _ := tree["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	known, ours := forUsers(), stamped()
	if labels[WorkloadLabel] != nil { // Muster's own label of that name, on an exported object
		ours = append(ours, QueueLabel)
	}
	for _, field := range []string{"labels", "annotations"} {
		list, _ := metadata[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(list)) {
			if !strings.HasPrefix(strings.ToLower(key), Prefix) || known[key] == field || slices.Contains(ours, key) {
				continue
			}
			if len(warnings) == mostNamed {
				return append(warnings, "metadata: more labels and annotations that begin with "+Prefix+" do nothing")
			}
			warning := fmt.Sprintf("metadata.%s[%s]: does nothing, because Muster has no such key", field, fault.Clip(key))
			if right := known[key]; right != "" {
				warning = fmt.Sprintf("metadata.%s[%s]: does nothing here; put it in metadata.%s", field, key, right)
			} else if like := similarKey(key, known); like != "" {
				warning += fmt.Sprintf("; did you mean %s in metadata.%s?", like, known[like])
			}
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

// similarKey returns the known key that is most like an unknown one; empty when none is.
func similarKey(key string, known map[string]string) string {
	const mostEdits = 2
	asked := plainKey(key)
	if len(asked) == 0 || len(asked) > mostCompared {
		return ""
	}
	best, distance := "", mostEdits+1
	for _, other := range slices.Sorted(maps.Keys(known)) {
		name := plainKey(other)
		edits := fault.Edits(asked, name)
		if len(asked) >= 4 && strings.HasPrefix(name, asked) { // a part of the name
			edits = min(edits, mostEdits)
		}
		if edits < distance {
			best, distance = other, edits
		}
	}
	return best
}

// plainKey is a key without its prefix and what separates its words.
func plainKey(key string) string {
	name := strings.TrimPrefix(strings.ToLower(key), Prefix)
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(name)
}
