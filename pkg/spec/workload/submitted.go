package workload

import (
	"errors"
	"fmt"
	"math"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

const (
	// mostText bounds a name of what is submitted, in bytes: indexes of the database have it.
	mostText = 512
	// mostExitCodes bounds the codes after which a gang is tried again, or is not.
	mostExitCodes = 1000
	// mostKinds bounds the kinds of the objects in an AppWrapper.
	mostKinds = 256
)

// CheckSubmitted returns the first thing of a workload that no manifest becomes which intake accepts.
// It is for workloads that another part has read, and whose key may have been stolen.
func (w *Workload) CheckSubmitted() error {
	switch w.Kind {
	case KindRayCluster, KindRayJob, KindRayService, KindAppWrapper:
	default:
		return fault.At("kind", "%.80q: want %s, %s, %s or %s", w.Kind, KindRayCluster, KindRayJob, KindRayService, KindAppWrapper)
	}
	switch {
	case !objectName.MatchString(w.Name):
		return fault.At("name", "%.80q: want the name of an object in Kubernetes", w.Name)
	case !ValidName(w.Namespace):
		return fault.At("namespace", "%.80q: want the name of a namespace", w.Namespace)
	case w.Digest == "":
		return fault.At("digest", "is missing; want that of the content")
	}
	if err := errors.Join(checkText("id", string(w.ID)), checkText("digest", w.Digest), checkText("submitter", w.Submitter), w.Life.Tolerance.check()); err != nil {
		return err
	}
	if err := CheckPodSets(w.PodSets, MostPods, math.MaxInt64); err != nil {
		return fault.At("podSets", "%s", err)
	}
	for i := range w.PodSets {
		if err := w.PodSets[i].checkSubmitted(); err != nil {
			return fmt.Errorf("%s: %w", fault.Index("podSets", i), err)
		}
	}
	return nil
}

func (t *Tolerance) check() error {
	if t == nil {
		return nil
	}
	if t.Retries != nil && *t.Retries < 0 {
		return fault.At("life.tolerance.retries", "%d: want 0 or more", *t.Retries)
	}
	if codes := len(t.TerminalExitCodes) + len(t.RetryableExitCodes); codes > mostExitCodes {
		return fault.At("life.tolerance", "has %d exit codes; want at most %d", codes, mostExitCodes)
	}
	return nil
}

func (s *PodSet) checkSubmitted() error {
	switch topology := s.Topology; {
	case s.Name == "":
		return fault.At("name", "is missing")
	case s.Later < 0 || s.Later > s.Count:
		return fault.At("later", "%d: want 0 to count, which is %d", s.Later, s.Count)
	case s.MinCount < 0 || s.MinCount > s.Count:
		return fault.At("minCount", "%d: want 0 to count, which is %d", s.MinCount, s.Count)
	case s.Step < 0 || s.Step > MostPods:
		return fault.At("step", "%d: want 0 to %d", s.Step, MostPods)
	case s.Resized != 0:
		return fault.At("resized", "%d: want 0 before the first admission", s.Resized)
	case len(s.Kinds) > mostKinds:
		return fault.At("kinds", "has %d; want at most %d", len(s.Kinds), mostKinds)
	case topology != nil && (topology.SliceSize < 0 || topology.SliceSize > 1 && s.Count%topology.SliceSize != 0):
		return fault.At("topology.sliceSize", "%d: want whole slices of %d pods", topology.SliceSize, s.Count)
	case topology != nil && topology.Mode != "" && topology.Mode != TopologyRequired && topology.Mode != TopologyPreferred:
		return fault.At("topology.mode", "%.80q: want %s, %s or none", topology.Mode, TopologyRequired, TopologyPreferred)
	}
	for _, selector := range []ClusterSelector{s.Clusters, s.PreferClusters} {
		if parsed, err := ParseClusterSelector(string(selector)); err != nil || parsed != selector {
			return fault.At("clusters", "%.80q: want selectors of clusters, sorted and without spaces", string(selector))
		}
	}
	if err := errors.Join(checkText("name", s.Name), checkText("role", s.Role), checkText("group", s.Group)); err != nil {
		return err
	}
	if err := s.Template.checkSubmitted(); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	return nil
}

func (t *Template) checkSubmitted() error {
	if slots := t.Requests[resource.Pods]; slots != 1 {
		return fault.At("requests.pods", "%d: want 1, a pod takes one slot", slots)
	}
	for name := range t.Requests {
		if err := checkText("requests", string(name)); err != nil {
			return err
		}
	}
	for name, sums := range t.Unset {
		if !MayDefault(name) || len(sums) > mostSums {
			return fault.At("unset", "%.80q has %d sums; want cpu or memory, with at most %d", name, len(sums), mostSums)
		}
		for _, sum := range sums {
			if sum.Base < 0 || sum.Times < 0 {
				return fault.At("unset", "%s is %d and %d times the default; want 0 or more of both", name, sum.Base, sum.Times)
			}
		}
	}
	for _, port := range t.HostPorts {
		if port.Port < 1 || port.Port > math.MaxUint16 {
			return fault.At("hostPorts", "%d: want 1 to %d", port.Port, math.MaxUint16)
		}
	}
	for _, spread := range t.Spread {
		if spread.MaxSkew < 1 || spread.MinDomains < 0 {
			return fault.At("spread", "maxSkew %d, minDomains %d: want 1 or more, and 0 or more", spread.MaxSkew, spread.MinDomains)
		}
	}
	return t.checkAsks()
}

// checkAsks checks what LimitRanges are compared with. CheckComplexity has bounded their number.
func (t *Template) checkAsks() error {
	for _, pod := range t.Asks {
		for _, ask := range pod {
			err := checkText("asks.name", ask.Name)
			for _, list := range []resource.List{ask.Requests, ask.Limits} {
				err = errors.Join(err, checkAmounts(list, math.MaxInt64))
			}
			if err != nil {
				return fault.At("asks", "container %.80q: %s", ask.Name, err)
			}
		}
	}
	return nil
}

func checkText(at, text string) error {
	if len(text) > mostText {
		return fault.At(at, "%.20q... has %d bytes; want at most %d", text, len(text), mostText)
	}
	return nil
}
