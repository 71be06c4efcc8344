package event

import (
	"math"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// NamespaceObserved is the present state of a namespace of a cluster. Last value per
// namespace.
type NamespaceObserved struct {
	Version   Version           `json:"version"`
	Cluster   string            `json:"cluster"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Unread is the number of labels when these are too many to be reported: then Labels
	// has none of them.
	Unread int `json:"unread,omitempty"`
	// Defaults are what the LimitRanges of the namespace have containers ask for that ask none
	// of cpu or memory.
	Defaults resource.List `json:"defaults,omitempty"`
	// Ranges are the LimitRanges of the namespace, by name; none when one of them, their number,
	// or that of their amounts, is too much to be reported.
	Ranges []workload.LimitRange `json:"ranges,omitempty"`
	// Gone means that the namespace does not exist any more.
	Gone bool `json:"gone,omitempty"`
}

// NamespaceLabels is the largest number of labels of a namespace that is reported.
const NamespaceLabels = 256

// EventType implements Payload.
func (*NamespaceObserved) EventType() string { return "dev.muster.capacity.namespace.v1" }

// CloudEventSubject implements Payload.
func (e *NamespaceObserved) CloudEventSubject() string { return e.Cluster + "/" + e.Namespace }

func (c *check) namespace(o *NamespaceObserved) {
	c.text("namespace", o.Namespace)
	c.count("labels", len(o.Labels), NamespaceLabels)
	for key, value := range o.Labels {
		c.text("label", key, value)
	}
	for name, amount := range o.Defaults {
		if !workload.MayDefault(name) || amount < 0 {
			c.fail("the default request of %.80q is %d; want cpu or memory, and no negative amount", name, amount)
		}
	}
	c.count("LimitRanges", len(o.Ranges), workload.MostRanges)
	c.count("amounts of LimitRanges", workload.AmountsOf(o.Ranges), workload.MostNamespaceAmounts)
	for i := range o.Ranges {
		c.limitRange(&o.Ranges[i])
	}
	if o.Unread < 0 || o.Unread > 0 && len(o.Labels) > 0 {
		c.fail("%d labels are not reported, and %d are; want all or none", o.Unread, len(o.Labels))
	}
}

func (c *check) limitRange(r *workload.LimitRange) {
	c.text("LimitRange", r.Name)
	c.count("items of a LimitRange", len(r.Items), workload.MostRangeItems)
	for i := range r.Items {
		item := &r.Items[i]
		c.count("amounts of an item of a LimitRange", item.Amounts(), workload.MostRangeAmounts)
		for what, amounts := range map[string]resource.List{
			"min": item.Min, "max": item.Max, "ratio": item.Ratio, "default": item.Default, "default request": item.DefaultRequest,
		} {
			c.amounts(what, amounts, math.MaxInt64)
		}
	}
}
