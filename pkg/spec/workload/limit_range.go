package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
)

// LimitRange is what an object of this kind demands of the pods of its namespace. The API
// server refuses a pod that is beyond it.
type LimitRange struct {
	Name  string      `json:"name"`
	Items []LimitItem `json:"items"`
}

// LimitItem bounds each container, or with Pods what the containers of a pod ask for together.
type LimitItem struct {
	Pods bool          `json:"pods,omitempty"`
	Min  resource.List `json:"min,omitempty"`
	Max  resource.List `json:"max,omitempty"`
	// Ratio bounds the limit by a multiple of the request, in thousandths.
	Ratio resource.List `json:"ratio,omitempty"`
	// DefaultRequest and Default are the request and the limit of a container without one.
	DefaultRequest resource.List `json:"defaultRequest,omitempty"`
	Default        resource.List `json:"default,omitempty"`
}

// Amounts returns the number of amounts of the item.
func (i *LimitItem) Amounts() int {
	return len(i.Min) + len(i.Max) + len(i.Ratio) + len(i.DefaultRequest) + len(i.Default)
}

// SameRanges reports whether both demand the same.
func SameRanges(a, b []LimitRange) bool {
	return slices.EqualFunc(a, b, func(a, b LimitRange) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Items, b.Items, func(a, b LimitItem) bool {
			return a.Pods == b.Pods && maps.Equal(a.Min, b.Min) && maps.Equal(a.Max, b.Max) && maps.Equal(a.Ratio, b.Ratio) &&
				maps.Equal(a.DefaultRequest, b.DefaultRequest) && maps.Equal(a.Default, b.Default)
		})
	})
}

// Bounds of the LimitRanges of a namespace that are reported: their number, their items, and
// the amounts of an item. Those of a namespace that has more are not known.
const (
	MostRanges       = 16
	MostRangeItems   = 8
	MostRangeAmounts = 64
)

// Beyond returns which bound of the LimitRanges the pods do not keep, so that the API server
// would refuse to create them; empty when they keep all, or when that is not known.
func Beyond(sets []PodSet, ranges []LimitRange) string {
	if len(ranges) == 0 {
		return ""
	}
	fills := fillsOf(ranges)
	for i := range sets {
		if sets[i].Count <= 0 {
			continue
		}
		for _, pod := range sets[i].Template.Asks {
			if which, why := fills.beyond(pod, ranges); why != "" {
				return fmt.Sprintf("%s of pod set %q %s", which, clipped(sets[i].Name), why)
			}
		}
	}
	return ""
}

// fills are what the API server gives to containers without a request or limit.
type fills struct {
	requests, limits resource.List
	// unsure are the resources for which LimitRanges differ: the API server takes any.
	unsureRequests, unsureLimits map[resource.Name]bool
}

func fillsOf(ranges []LimitRange) fills {
	f := fills{resource.List{}, resource.List{}, map[resource.Name]bool{}, map[resource.Name]bool{}}
	add := func(to resource.List, unsure map[resource.Name]bool, one resource.List) {
		for name, amount := range one {
			if known, there := to[name]; there && known != amount {
				unsure[name] = true
			}
			to[name] = amount
		}
	}
	for i := range ranges {
		requests, limits := resource.List{}, resource.List{} // the last item of a LimitRange counts
		for j := range ranges[i].Items {
			if item := &ranges[i].Items[j]; !item.Pods {
				maps.Copy(requests, item.DefaultRequest)
				maps.Copy(limits, item.Default)
			}
		}
		add(f.requests, f.unsureRequests, requests)
		add(f.limits, f.unsureLimits, limits)
	}
	return f
}

// created is what a container, or all of a pod together, asks for when the API server has
// filled in what is missing.
type created struct {
	requests, limits resource.List
	unsure           map[resource.Name]bool
}

func (f fills) container(ask *ContainerAsk) created {
	c := created{f.requests.Clone(), f.limits.Clone(), map[resource.Name]bool{}}
	maps.Copy(c.requests, ask.Requests)
	maps.Copy(c.limits, ask.Limits)
	for name := range f.unsureRequests {
		if _, own := ask.Requests[name]; !own {
			c.unsure[name] = true
		}
	}
	for name := range f.unsureLimits {
		if _, own := ask.Limits[name]; !own {
			c.unsure[name] = true
		}
	}
	return c
}

// beyond returns which part of a pod does not keep a bound, and why.
func (f fills) beyond(pod []ContainerAsk, ranges []LimitRange) (which, why string) {
	all := make([]created, len(pod))
	whole := created{unsure: map[resource.Name]bool{}}
	for i := range pod {
		all[i] = f.container(&pod[i])
		maps.Copy(whole.unsure, all[i].unsure)
	}
	whole.requests = podAsks(pod, func(i int) resource.List { return all[i].requests })
	whole.limits = podAsks(pod, func(i int) resource.List { return all[i].limits })
	for i := range pod {
		which = fmt.Sprintf("container %q", clipped(pod[i].Name))
		if why = all[i].beyondDefault(&pod[i]); why != "" {
			return which, why
		}
		for r := range ranges {
			for j := range ranges[r].Items {
				if item := &ranges[r].Items[j]; !item.Pods {
					if why = all[i].beyond(item, ranges[r].Name, "a container"); why != "" {
						return which, why
					}
				}
			}
		}
	}
	for r := range ranges {
		for j := range ranges[r].Items {
			if item := &ranges[r].Items[j]; item.Pods {
				if why = whole.beyond(item, ranges[r].Name, "a pod"); why != "" {
					return "a pod", why
				}
			}
		}
	}
	return "", ""
}

// beyondDefault returns of which resource the container asks for more than the limit that it
// gets by default.
func (c *created) beyondDefault(ask *ContainerAsk) string {
	for _, name := range c.limits.Names() {
		request, limit := c.requests[name], c.limits[name]
		if _, own := ask.Limits[name]; !own && !c.unsure[name] && request > limit {
			return fmt.Sprintf("asks for %s, and the LimitRanges of its namespace give it a limit of %s", amountOf(name, request), resource.Format(name, limit))
		}
	}
	return ""
}

// beyond compares as the admission plugin LimitRanger of the API server does.
func (c *created) beyond(item *LimitItem, of, each string) string {
	of = fmt.Sprintf("LimitRange %q", clipped(of))
	for _, name := range item.Min.Names() {
		request, asks := c.requests[name]
		limit, limited := c.limits[name]
		demands := fmt.Sprintf("%s demands at least %s of %s", of, resource.Format(name, item.Min[name]), each)
		switch {
		case c.unsure[name]:
		case !asks:
			return fmt.Sprintf("asks for no %s, and %s", clipped(string(name)), demands)
		case request < item.Min[name]:
			return fmt.Sprintf("asks for %s, and %s", amountOf(name, request), demands)
		case limited && limit < item.Min[name]:
			return fmt.Sprintf("has a limit of %s, and %s", amountOf(name, limit), demands)
		}
	}
	for _, name := range item.Max.Names() {
		request, limit := c.requests[name], c.limits[name]
		_, limited := c.limits[name]
		allows := fmt.Sprintf("%s allows %s %s at most", of, each, resource.Format(name, item.Max[name]))
		switch {
		case c.unsure[name]:
		case !limited:
			return fmt.Sprintf("has no limit of %s, and %s", clipped(string(name)), allows)
		case limit > item.Max[name]:
			return fmt.Sprintf("has a limit of %s, and %s", amountOf(name, limit), allows)
		case request > item.Max[name]:
			return fmt.Sprintf("asks for %s, and %s", amountOf(name, request), allows)
		}
	}
	for _, name := range item.Ratio.Names() {
		request, limit, most := c.requests[name], c.limits[name], item.Ratio[name]
		allows := fmt.Sprintf("%s allows %s a limit of %s times the request", of, each, resource.Format(resource.CPU, most))
		switch {
		case c.unsure[name]:
		case request == 0:
			return fmt.Sprintf("asks for no %s, and %s", clipped(string(name)), allows)
		case limit == 0:
			return fmt.Sprintf("has no limit of %s, and %s", clipped(string(name)), allows)
		case float64(limit)/float64(request)*1000 > float64(most): // in floating point as the API server
			return fmt.Sprintf("asks for %s with a limit of %s, and %s", amountOf(name, request), resource.Format(name, limit), allows)
		}
	}
	return ""
}

func amountOf(name resource.Name, amount int64) string {
	return clipped(string(name)) + " " + resource.Format(name, amount)
}

// clipped bounds a name of a manifest or a cluster in a reason.
func clipped(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
