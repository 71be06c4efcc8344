package event

// ClusterChanged says that the state of a cluster has changed. It is on
// ClusterEventsSubject(cluster), for it is of no queue.
type ClusterChanged struct {
	Cluster string `json:"cluster"`
	// State is what the cluster is now, such as "silent", and Was what it was before.
	State string `json:"state"`
	Was   string `json:"was"`
	// Live are the workloads that hold places in it.
	Live int `json:"live"`
}

// EventType implements Payload.
func (*ClusterChanged) EventType() string { return "dev.muster.cluster.changed.v1" }

// CloudEventSubject implements Payload.
func (e *ClusterChanged) CloudEventSubject() string { return e.Cluster }
