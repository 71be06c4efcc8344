package contract

import (
	"regexp"
	"strings"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

type object = map[string]any

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// question is a request on a subject, with its answer.
type question struct {
	subject, what   string
	request, answer any
}

// questions are all of them.
func questions() []question {
	nothing := struct{}{}
	return []question{
		{query.WorkloadsSubject, "list workloads, a page at a time", &query.WorkloadsRequest{}, &query.WorkloadsAnswer{}},
		{query.HistorySubject, "the history of a workload", &query.HistoryRequest{}, &query.HistoryAnswer{}},
		{query.QueuesSubject, "list queues: quota, use, waiting workloads", &nothing, &query.QueuesAnswer{}},
		{query.NodesSubject, "list nodes with reserved and free amounts, a page at a time where asked", &query.NodesRequest{}, &query.NodesAnswer{}},
		{query.StatusSubject, "how Muster's own parts are: leader, clusters, Postgres, NATS", &nothing, &query.StatusAnswer{}},
		{query.WhatIfSubject, "what a change would do to those that run and wait", &query.WhatIfRequest{}, &query.WhatIfAnswer{}},
		{query.UsageSubject, "what was used from one time to another, by queue, namespace, submitter, flavor, cluster, or time", &query.UsageRequest{}, &query.UsageAnswer{}},
		{query.ActivitySubject, "how many workloads were submitted, admitted, evicted, ended and waiting over time", &query.ActivityRequest{}, &query.ActivityAnswer{}},
		{query.DecisionsSubject, "what was decided, on what, a page at a time", &query.DecisionsRequest{}, &query.DecisionsAnswer{}},
		{query.ManifestSubject, "the manifest of a workload, with its secrets masked", &query.ManifestRequest{}, &query.ManifestAnswer{}},
		{query.ExplainSubject, "why a workload waits, and what would admit it", &query.ExplainRequest{}, &query.ExplainAnswer{}},
		{query.DemandSubject, "what waiting gangs lack that more nodes would give them", &nothing, &query.DemandAnswer{}},
		{query.AppliedSubject, "list the objects that configure queues and were applied", &nothing, &query.AppliedAnswer{}},
		{query.TruthSubject("{cluster}"), "what a cluster has to know of a workload, from its dispatcher", &query.TruthRequest{}, &query.TruthAnswer{}},
		{query.StraysSubject, "the rules for stray pods, by namespace", &nothing, &query.StraysAnswer{}},
		{query.ConfigureSubject, "apply and delete objects that configure queues: all of it or nothing", &query.ConfigureRequest{}, &query.ConfigureAnswer{}},
		{query.HoldSubject, "hold a queue, or resume it, from an intake for an operator", &query.HoldRequest{}, &query.ConfigureAnswer{}},
		{query.ClusterConfigureSubject("{cluster}"), "the same, from the intake of a cluster, for the objects of that cluster", &query.ConfigureRequest{}, &query.ConfigureAnswer{}},
		{query.CarrySubject("{cluster}"), "an object of another cluster that a queue carries, from the dispatcher of the cluster where a gang of it has its places", &query.CarryRequest{}, &query.CarryAnswer{}},
		{query.HomeSubject("{cluster}", "{queue}"), "submissions, cancellations and workloads of objects that users make with kubectl in a further cluster, from its intake", &query.HomeRequest{}, &query.HomeAnswer{}},
	}
}

// describeQuestions adds the questions to the channels: NATS request-reply.
func describeQuestions(schema func(any) any, channels, operations, components object) {
	components["problem"] = object{
		"name": "problem", "title": "Problem", "summary": "The answer, with the header Muster-Problem, to a request that failed.",
		"contentType": "application/json", "payload": schema(&query.Problem{}),
	}
	for _, q := range questions() {
		name := channelName(q.subject)
		if strings.Contains(q.subject, "{") {
			name += "-cluster"
		}
		ref := func(message string) object { return object{"$ref": "#/channels/" + name + "/messages/" + message} }
		component := func(kind, what string, payload any) object {
			components[name+"-"+kind] = object{"name": name + "-" + kind, "summary": what, "contentType": "application/json", "payload": schema(payload)}
			return object{"$ref": "#/components/messages/" + name + "-" + kind}
		}
		channel := object{"address": q.subject, "messages": object{
			"request": component("request", "Request: "+q.what+".", q.request), "answer": component("answer", "Answer: "+q.what+".", q.answer),
			"problem": object{"$ref": "#/components/messages/problem"},
		}}
		if parameters := parametersOf(q.subject); len(parameters) > 0 {
			channel["parameters"] = parameters
		}
		channels[name] = channel
		operations[name] = object{
			"action": "send", "summary": q.what, "channel": object{"$ref": "#/channels/" + name}, "messages": []any{ref("request")},
			"reply": object{"channel": object{"$ref": "#/channels/" + name}, "messages": []any{ref("answer"), ref("problem")}},
		}
	}
}

// asyncAPI describes all channels: AsyncAPI 3.0.
func asyncAPI(schema func(any) any) object {
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
	add(event.SubmitType, event.SubmitSubject("{queue}"), "any client", "intake", "a RayCluster, RayJob or RayService manifest",
		envelope(event.SubmitType, object{"type": []any{"object", "string"}, "description": "The manifest: an object, or YAML as a text."}))
	user := channelName(event.SubmitSubject("{queue}")) + "-user"
	channels[user] = object{
		"address": event.SubmitSubjectAs("{queue}", "{user}"), "parameters": parametersOf(event.SubmitSubjectAs("{queue}", "{user}")),
		"messages": object{"workload.submit": object{"$ref": "#/components/messages/workload.submit"}},
	}
	operations["workload.submit.user"] = object{
		"action": "send", "summary": "the same, by a user that NATS lets publish under its own name only", "channel": object{"$ref": "#/channels/" + user},
		"messages": []any{object{"$ref": "#/channels/" + user + "/messages/workload.submit"}},
	}
	describeQuestions(schema, channels, operations, components)
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
			"queue": "The name of the queue, a DNS label.", "cluster": "The name of the cluster, a DNS label.",
			"workload": "The workload's id, or _ when a submission had none that is readable.",
			"node":     "The node's name, with underscores for dots.", "user": "Who submits: the name of a user of NATS.",
			"check": "The name of the AdmissionCheck, with underscores for dots.",
		}[found[1]]
		parameters[found[1]] = object{"description": what}
	}
	return parameters
}
