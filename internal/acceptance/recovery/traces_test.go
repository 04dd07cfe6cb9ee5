package recovery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/internal/otlpfake"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	tracedID = "traced"
	// producerTrace and producerSpan are those of the message's sender.
	producerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	producerSpan  = "00f067aa0ba902b7"
)

// tracedHosts starts two hosts whose handlers send traces to a collector and events to a receiver.
func tracedHosts(t *testing.T, collector *otlpfake.Collector, receiver string) (*hosts.Cluster, []*hosts.Host) {
	t.Helper()
	routes := `{"destinations":{"hook":{"http":{"url":"` + receiver + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"hook"}]}`
	return newCluster(t, 2, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=200", "ROUNDHOUSE_OUTBOX="+routes)
}

// TestOneTrace: a message with a trace context passes through an engine with an event, a user task, a child, a timer
// and activities to a webhook, while the host that runs it is killed with its handler. It is one connected trace
// without contradictory spans, and the timeline agrees with it.
func TestOneTrace(t *testing.T) {
	collector := otlpfake.New(t)
	var delivered atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered.Add(1) }))
	t.Cleanup(receiver.Close)
	c, all := tracedHosts(t, collector, receiver.URL)
	run := hosts.ID(tracedID)
	work := hosts.Work{Event: true, Ask: "approve", Children: 1, Naps: 1, Nap: time.Second, Calls: 3, Lasts: 4 * time.Second, Publish: "work.done"}
	testenv.OK(t, c.SendTraced(t.Context(), tracedID, "00-"+producerTrace+"-"+producerSpan+"-01", work))
	underWay(t, c, run, func(p hosts.Progress) bool { return p.Waiting == "Event" })
	testenv.OK(t, c.Raise(t.Context(), tracedID))
	approve(t, all[0])
	child := ""
	testenv.Until(t, "a call of the child has ended", func() bool {
		child = childOf(t, c, run)
		return child != "" && count(collector, "activity:step client") > 0
	})
	before := testenv.Must(c.Inspect(t.Context(), child))(t)
	victim, other := all[0], all[1] // the process that received the answer continues itself, as the nodes show
	victim.Kill()
	testenv.Until(t, "the end", func() bool {
		p, err := c.Progress(t.Context())
		return err == nil && p[run].Ended()
	})
	testenv.Until(t, "the event is delivered and all is told", func() bool {
		return delivered.Load() > 0 && count(collector, "orchestration:work server") > 0 && count(collector, "deliver hook client") > 0
	})
	if after, err := c.Inspect(t.Context(), child); err != nil || after.Node == before.Node {
		t.Errorf("the child was worked on by %s alone: %v", before.Node, err)
	}
	spans := traceOf(collector)
	checkConnected(t, spans)
	if diff := cmp.Diff(callsOf(spans), calledOf(timeline(t, other))); diff != "" {
		t.Errorf("what the trace tells, and the timeline (-trace +timeline):\n%s", diff)
	}
}

// approve answers the user task.
func approve(t *testing.T, h *hosts.Host) {
	t.Helper()
	type task struct{ OrchestrationID, TaskID string }
	var open []task
	testenv.Until(t, "the question", func() bool {
		open = ask[struct{ Items []task }](t, h, http.MethodGet, "/api/tasks", "").Items
		return len(open) > 0
	})
	path := "/api/tasks/" + url.PathEscape(open[0].OrchestrationID) + "/" + url.PathEscape(open[0].TaskID)
	ask[json.RawMessage](t, h, http.MethodPost, path+"/claim", `{}`)
	ask[json.RawMessage](t, h, http.MethodPost, path+"/complete", `{"output":true}`)
}

// ask sends a request to the API of a host.
func ask[T any](t *testing.T, h *hosts.Host, method, path, body string) (data T) {
	t.Helper()
	r := testenv.Must(http.NewRequestWithContext(testenv.Context(t), method, h.URL()+path, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	resp := testenv.Must(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	answer := struct{ Data *T }{&data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode > 299 {
		t.Fatalf("%s %s: %d, %v", method, path, resp.StatusCode, err)
	}
	return data
}

// childOf returns the child of a run, "" without one.
func childOf(t *testing.T, c *hosts.Cluster, run string) string {
	t.Helper()
	all := testenv.Must(c.Progress(t.Context()))(t)
	for id := range all {
		if id != run {
			return id
		}
	}
	return ""
}

// named returns the test's name of a span.
func named(s otlpfake.Span) string { return s.Name + " " + s.Kind }

func traceOf(c *otlpfake.Collector) (all []otlpfake.Span) {
	for _, s := range c.Spans() {
		if s.Trace == producerTrace {
			all = append(all, s)
		}
	}
	return all
}

func count(c *otlpfake.Collector, name string) (n int) {
	for _, s := range traceOf(c) {
		if named(s) == name {
			n++
		}
	}
	return n
}

// checkConnected checks that all spans descend from the producer's, that ids are unique, and that all kinds occur.
func checkConnected(t *testing.T, spans []otlpfake.Span) {
	t.Helper()
	byID, names := map[string]otlpfake.Span{}, map[string]bool{}
	for _, s := range spans {
		names[named(s)] = true
		if was, twice := byID[s.ID]; twice && (named(was) != named(s) || was.Parent != s.Parent || !was.Begin.Equal(s.Begin) || !was.End.Equal(s.End)) {
			t.Errorf("the id %s is %s from %v to %v below %s, and %s from %v to %v below %s", s.ID, named(was), was.Begin, was.End, was.Parent, named(s), s.Begin, s.End, s.Parent)
		}
		byID[s.ID] = s
	}
	for _, s := range byID {
		if _, ok := byID[s.Parent]; !ok && s.Parent != producerSpan {
			t.Errorf("%s has the parent %q, which is not there", named(s), s.Parent)
		}
	}
	want := map[string]bool{}
	for _, name := range []string{"create_orchestration:work producer", "process work-queue consumer", "orchestration:work server", "orchestration_event:go producer",
		"orchestration_event:go consumer", "task:approve internal", "orchestration:part client", "orchestration:part server", "orchestration:part:timer internal",
		"activity:step client", "activity:step server", "publish work.done producer", "deliver hook client"} {
		want[name] = true
	}
	testenv.Equal(t, "the spans", want, names)
}

// entry is an entry of a trace or of a timeline, with its start and end.
func entry(what string, begin, end time.Time) string {
	const exact = "15:04:05.000"
	return fmt.Sprintf("%s %s %s", what, begin.UTC().Format(exact), end.UTC().Format(exact))
}

// callsOf returns the calls and events of the runs, by their spans.
func callsOf(spans []otlpfake.Span) (all []string) {
	for _, s := range spans {
		before, _, _ := strings.Cut(s.Name, ":")
		switch {
		case named(s) == "orchestration:part client", before == "activity" && s.Kind == "client", before == "task", strings.HasSuffix(s.Name, ":timer"),
			before == "orchestration_event", strings.HasPrefix(s.Name, "publish "):
			all = append(all, entry(named(s), s.Begin, s.End))
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // a repeated one is equal
}

// item is an entry of the timeline.
type item struct {
	AtUtc, EndedAtUtc time.Time
	Call              *struct{ Type, Name string }
	Timer             *struct{ Status string }
	Event             *struct{ Name string }
	Task              *struct{ Name, What string }
	Publication       *struct{ EventType string }
}

// timeline reads all pages.
func timeline(t *testing.T, h *hosts.Host) (all []item) {
	t.Helper()
	token := ""
	for {
		page := ask[struct {
			Items             []item
			Truncated         bool
			ContinuationToken string
		}](t, h, http.MethodGet, "/api/timeline/"+tracedID+"?limit=5"+token, "")
		if all = append(all, page.Items...); page.Truncated || page.ContinuationToken == "" {
			if page.Truncated {
				t.Error("the timeline leaves something out")
			}
			return all
		}
		token = "&continuationToken=" + url.QueryEscape(page.ContinuationToken)
	}
}

// calledOf returns the calls and events of the runs, by the timeline. It does not show which event ended a wait; here
// each has one. A publication is decided immediately: the end of its item is its delivery.
func calledOf(items []item) (all []string) {
	var wait, event item
	for _, i := range items {
		switch {
		case i.Call != nil && i.Call.Type == "Event":
			wait = i
		case i.Call != nil:
			all = append(all, entry(strings.ToLower(i.Call.Type)+":"+i.Call.Name+" client", i.AtUtc, i.EndedAtUtc))
		case i.Timer != nil:
			all = append(all, entry("orchestration:part:timer internal", i.AtUtc, i.EndedAtUtc))
		case i.Event != nil:
			event = i
			all = append(all, entry("orchestration_event:"+i.Event.Name+" producer", i.AtUtc, i.AtUtc))
		case i.Task != nil && i.Task.What == "created":
			all = append(all, entry("task:"+i.Task.Name+" internal", i.AtUtc, i.EndedAtUtc))
		case i.Publication != nil:
			all = append(all, entry("publish "+i.Publication.EventType+" producer", i.AtUtc, i.AtUtc))
		}
	}
	if wait.Call != nil {
		all = append(all, entry("orchestration_event:"+wait.Call.Name+" consumer", wait.AtUtc, event.AtUtc))
	}
	slices.Sort(all)
	return all
}
