package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// UsageSubject asks what was used.
const UsageSubject = "muster.query.usage"

// Bounds of a report of usage.
const (
	MaxUsageRows   = 1000
	MaxUsageKeys   = 4
	MaxUsageRange  = 366 * 24 * time.Hour
	MaxUsagePrices = 100
	// MaxUsageHours bounds the range of a report by hour.
	MaxUsageHours = 31 * 24 * time.Hour
	mostPrice     = 1e12
)

// What a report of usage may be by.
const (
	ByQueue     = "queue"
	ByNamespace = "namespace"
	BySubmitter = "submitter"
	// ByUser is by the name of the submitter without the way of the submission: "ann" of both
	// "http/ann" and "nats/ann".
	ByUser    = "user"
	ByFlavor  = "flavor"
	ByCluster = "cluster"
	ByHour    = "hour" // of UTC, as are day and month
	ByDay     = "day"
	ByMonth   = "month"
)

// UsageKeys lists them.
func UsageKeys() []string {
	return []string{ByQueue, ByNamespace, BySubmitter, ByUser, ByFlavor, ByCluster, ByHour, ByDay, ByMonth}
}

// UsageRequest asks what was used from one time to another.
type UsageRequest struct {
	Since time.Time `json:"since"`
	// Until is the time of the answer if it is zero.
	Until time.Time `json:"until,omitzero"`
	// By has the keys of the rows, see UsageKeys; empty for one row of all.
	By []string `json:"by,omitempty"`
	// What is selected; empty for all.
	Queue     string          `json:"queue,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Resources []resource.Name `json:"resources,omitempty"`
	// Prices make the cost.
	Prices []Price `json:"prices,omitempty"`
	// Within leaves out the workloads of all other places; empty is everywhere.
	Within []Place `json:"within,omitempty"`
}

// Price is what an hour of one unit of a resource costs: a core, a byte, a device.
type Price struct {
	// Flavor to which it applies; empty for all that have no price of their own.
	Flavor   string        `json:"flavor,omitempty"`
	Resource resource.Name `json:"resource"`
	PerHour  float64       `json:"perHour"`
}

// ParsePrice reads RESOURCE=NUMBER or FLAVOR:RESOURCE=NUMBER.
func ParsePrice(text string) (p Price, err error) {
	what, number, given := strings.Cut(text, "=")
	if p.PerHour, err = strconv.ParseFloat(number, 64); err != nil || !given || !(p.PerHour >= 0 && p.PerHour < mostPrice) {
		return p, fmt.Errorf("price %.80q: want RESOURCE=NUMBER or FLAVOR:RESOURCE=NUMBER, such as nvidia.com/gpu=2.5, with a number from 0 on", text)
	}
	name := what
	if flavor, of, has := strings.Cut(what, ":"); has {
		p.Flavor, name = flavor, of
	}
	if name == "" {
		return p, fmt.Errorf("price %.80q: want a resource, such as nvidia.com/gpu=2.5", text)
	}
	p.Resource = resource.Name(name)
	return p, nil
}

// String writes the price as ParsePrice reads it.
func (p Price) String() string {
	text := string(p.Resource) + "=" + strconv.FormatFloat(p.PerHour, 'f', -1, 64)
	if p.Flavor != "" {
		text = p.Flavor + ":" + text
	}
	return text
}

// Check refuses a request that cannot be answered or costs too much.
func (r UsageRequest) Check(now time.Time) error {
	until := r.Until
	if until.IsZero() {
		until = now
	}
	if r.Since.IsZero() || !r.Since.Before(until) {
		return fmt.Errorf("since %s, until %s: want a since before the until", r.Since.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	if length := until.Sub(r.Since); length > MaxUsageRange {
		return fmt.Errorf("since %s, until %s: want at most %d days", r.Since.Format(time.RFC3339), until.Format(time.RFC3339), MaxUsageRange/(24*time.Hour))
	} else if slices.Contains(r.By, ByHour) && length > MaxUsageHours {
		return fmt.Errorf("by %s: want at most %d days", ByHour, MaxUsageHours/(24*time.Hour))
	}
	if len(r.By) > MaxUsageKeys {
		return fmt.Errorf("by %d keys: want at most %d", len(r.By), MaxUsageKeys)
	}
	for i, key := range r.By {
		if !slices.Contains(UsageKeys(), key) {
			return fmt.Errorf("by %.40q: want %s", key, strings.Join(UsageKeys(), ", "))
		}
		if slices.Contains(r.By[:i], key) {
			return fmt.Errorf("by %s twice", key)
		}
	}
	if len(r.Prices) > MaxUsagePrices || len(r.Resources) > MaxUsagePrices {
		return fmt.Errorf("%d prices, %d resources: want at most %d", len(r.Prices), len(r.Resources), MaxUsagePrices)
	}
	for _, p := range r.Prices {
		if p.Resource == "" || !(p.PerHour >= 0 && p.PerHour < mostPrice) {
			return fmt.Errorf("price %v an hour of %.80q: want a number from 0 on, of a resource", p.PerHour, p.Resource)
		}
	}
	return nil
}

// UsageAnswer is what was used.
type UsageAnswer struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Oldest is the time of the oldest step in the history; what is before it is unknown.
	// It is zero when there is none.
	Oldest time.Time  `json:"oldest,omitzero"`
	By     []string   `json:"by"`
	Rows   []UsageRow `json:"rows"`
}

// UsageRow is what was used under one key.
type UsageRow struct {
	// Key has the value of each key in By, in that order.
	Key []string `json:"key"`
	// Admissions counts those in the time of the report, and Waits is how long they had
	// waited, in seconds: since the submission, or since the end of the attempt before.
	Admissions int        `json:"admissions"`
	Waits      UsageWaits `json:"waits"`
	// Resources are in the order of their names.
	Resources []UsedResource `json:"resources"`
	// Cost of what was reserved.
	Cost float64 `json:"cost,omitempty"`
}

// UsageWaits are percentiles in seconds.
type UsageWaits struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// UsedResource is a use of one resource, in its unit times seconds: cores, bytes, devices.
type UsedResource struct {
	Resource resource.Name `json:"resource"`
	// Reserved is the whole time from the admission until the places were freed: the sum of
	// Starting, Running and Stopping.
	Reserved float64 `json:"reserved"`
	// Starting is before all pods were ready, Running from then until the end or the removal
	// began, Stopping until the places were freed.
	Starting float64 `json:"starting"`
	Running  float64 `json:"running"`
	Stopping float64 `json:"stopping"`
	// Lost is the part of Running that an eviction has undone: since the last checkpoint that
	// the workload reported, or all of the attempt.
	Lost float64 `json:"lost"`
	// Idle is the part of Running during which a RayCluster that has ended had been idle.
	Idle float64 `json:"idle"`
}

// Wasted is what was reserved without a use.
func (u UsedResource) Wasted() float64 { return u.Starting + u.Lost + u.Idle }

// Usage asks what was used.
func (c *Client) Usage(ctx context.Context, request UsageRequest) (UsageAnswer, error) {
	return ask[UsageAnswer](ctx, c.transport, UsageSubject, request)
}
