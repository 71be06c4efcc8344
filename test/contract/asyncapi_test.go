package contract

import (
	"regexp"
	"strings"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
)

type object = map[string]any

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// asyncAPI describes all channels: AsyncAPI 3.0.
func asyncAPI() object {
	channels, operations, components := object{}, object{}, object{}
	add := func(kind, address, from, to, what string, payload object) {
		name := channelName(address)
		channel, known := channels[name].(object)
		if !known {
			channel = object{"address": address, "messages": object{}}
			if parameters := parametersOf(address); len(parameters) > 0 {
				channel["parameters"] = parameters
			}
			channels[name] = channel
		}
		short := strings.TrimSuffix(strings.TrimPrefix(kind, "dev.muster."), ".v1")
		channel["messages"].(object)[short] = object{"$ref": "#/components/messages/" + short}
		components[short] = object{
			"name": kind, "title": kind, "summary": what, "contentType": "application/cloudevents+json",
			"description": "From " + from + " to " + to + ".", "payload": payload,
		}
		operations[short] = object{
			"action": "send", "summary": what, "channel": object{"$ref": "#/channels/" + name},
			"messages": []any{object{"$ref": "#/channels/" + name + "/messages/" + short}},
		}
	}
	add(event.SubmitType, bus.SubmitSubject("{queue}"), "anybody", "intake", "a RayCluster, RayJob or RayService manifest",
		envelope(event.SubmitType, object{"type": []any{"object", "string"}, "description": "The manifest: an object, or YAML as a text."}))
	for _, m := range messages() {
		add(m.payload.EventType(), m.channel, m.from, m.to, m.what, envelope(m.payload.EventType(), object{"$ref": "./schemas/" + m.payload.EventType() + ".json"}))
	}
	return object{
		"asyncapi": "3.0.0",
		"info": object{
			"title": "Muster", "version": "1",
			"description": "Messages on NATS JetStream, as CloudEvents 1.0 in JSON. Submissions may also come in CloudEvents' binary mode.",
			"license":     object{"name": "Apache-2.0"},
		},
		"defaultContentType": "application/cloudevents+json",
		"channels":           channels,
		"operations":         operations,
		"components":         object{"messages": components},
	}
}

// envelope is a CloudEvent of a type.
func envelope(kind string, data object) object {
	text := object{"type": "string", "minLength": 1}
	return object{
		"type": "object", "required": []any{"specversion", "id", "source", "type"},
		"properties": object{
			"specversion": object{"const": event.SpecVersion}, "id": text, "source": text, "type": object{"const": kind},
			"subject": object{"type": "string"}, "time": object{"type": "string", "format": "date-time"},
			"datacontenttype": object{"type": "string"}, "data": data,
		},
	}
}

func channelName(address string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimPrefix(address, "muster."), ".") {
		if !strings.HasPrefix(part, "{") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "-")
}

func parametersOf(address string) object {
	parameters := object{}
	for _, found := range parameter.FindAllStringSubmatch(address, -1) {
		what := map[string]string{
			"queue": "The name of the queue, a DNS label.", "cluster": "What the cluster is called, a DNS label.",
			"workload": "The workload's id, or _ when a submission had none that is readable.",
			"node":     "The node's name, with underscores for dots.",
		}[found[1]]
		parameters[found[1]] = object{"description": what}
	}
	return parameters
}
