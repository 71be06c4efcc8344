package observed

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/message/event"
)

// SetNamespace records a namespace with its labels.
func (p *Cache) SetNamespace(name string, labels map[string]string) {
	if known, ok := p.namespaces[name]; ok && maps.Equal(known, labels) {
		return
	}
	p.namespaces[name] = labels
	p.dirty.add(Key{Namespace: name})
}

// RemoveNamespace records that a namespace is gone.
func (p *Cache) RemoveNamespace(name string) {
	if _, ok := p.namespaces[name]; ok {
		delete(p.namespaces, name)
		p.dirty.add(Key{Namespace: name})
	}
}

// ReplaceNamespaces records that exactly these namespaces exist.
func (p *Cache) ReplaceNamespaces(all map[string]map[string]string) {
	for _, name := range p.Namespaces() {
		if _, ok := all[name]; !ok {
			p.RemoveNamespace(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p.SetNamespace(name, all[name])
	}
	p.MarkChanged(p.recalled...)
	p.recalled, p.namespacesListed = nil, true
}

// Recall marks as changed what earlier watchers published. Namespaces are marked once all
// are recorded: until then none is known to be gone.
func (p *Cache) Recall(keys ...Key) {
	for _, key := range keys {
		if key.Namespace != "" && !p.namespacesListed {
			p.recalled = append(p.recalled, key)
		} else {
			p.dirty.add(key)
		}
	}
}

// Namespaces lists the namespaces, sorted.
func (p *Cache) Namespaces() []string { return slices.Sorted(maps.Keys(p.namespaces)) }

// NamespacesListed reports whether all namespaces are recorded.
func (p *Cache) NamespacesListed() bool { return p.namespacesListed }

func (p *Cache) namespace(name string, version event.Version) (payload event.Payload, gone bool) {
	labels, ok := p.namespaces[name]
	o := &event.NamespaceObserved{Version: version, Cluster: p.cluster, Namespace: name, Labels: labels, Gone: !ok}
	if ok {
		limited := p.limited(name)
		o.Defaults, o.Ranges = limited.defaults, limited.ranges
	}
	if len(labels) > event.NamespaceLabels {
		o.Labels, o.Unread = nil, len(labels)
	}
	return o, !ok
}
