package event

import "muster.dev/muster/pkg/spec/workload"

// DemandSubject carries what waiting gangs lack. It is of no stream: the present demand comes
// again every minute, and query.DemandSubject answers with it.
const DemandSubject = "muster.demand"

// DemandChanged is what waiting gangs lack that more nodes would give them.
type DemandChanged struct {
	Epoch int64 `json:"epoch"`
	workload.Demand
}

// EventType implements Payload.
func (*DemandChanged) EventType() string { return "dev.muster.demand.v1" }

// CloudEventSubject implements Payload.
func (*DemandChanged) CloudEventSubject() string { return "" }
