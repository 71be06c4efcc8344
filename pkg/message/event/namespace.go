package event

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
	// Gone says that the namespace does not exist any more.
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
	if o.Unread < 0 || o.Unread > 0 && len(o.Labels) > 0 {
		c.fail("%d labels are not reported, and %d are; want all or none", o.Unread, len(o.Labels))
	}
}
