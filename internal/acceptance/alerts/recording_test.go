package alerts

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// job is the name of the scrape job.
const job = "roundhouse"

// recording holds the scraped values of the metrics that the rules query, by the minute.
type recording struct {
	t      testing.TB
	wanted map[string]bool
	began  time.Time
	// every is the interval between samples.
	every  time.Duration
	series map[string]*series // by instance and series
	// scrapes are the minutes at which each instance was scraped.
	scrapes map[string][]int
	// ends are the minutes at which phases ended.
	ends []int
}

// series is one series of one instance.
type series struct {
	instance, text string
	counter        bool
	values         map[int]float64
}

// record starts a recording of the wanted metrics.
func record(t testing.TB, wanted []string, every time.Duration) *recording {
	r := &recording{t: t, wanted: map[string]bool{}, began: time.Now(), every: cmp.Or(every, time.Minute), series: map[string]*series{}, scrapes: map[string][]int{}}
	for _, name := range wanted {
		r.wanted[name] = true
	}
	return r
}

// minute returns the current minute.
func (r *recording) minute() int { return int(time.Since(r.began) / time.Minute) }

// step returns the minutes between samples.
func (r *recording) step() int { return int(r.every / time.Minute) }

// end records the end of a phase.
func (r *recording) end() { r.ends = append(r.ends, r.minute()) }

// scrape records the page of an instance, nil for one that does not answer.
func (r *recording) scrape(instance string, page []byte) {
	r.t.Helper()
	r.scrapeAt(r.minute(), instance, page)
}

func (r *recording) scrapeAt(minute int, instance string, page []byte) {
	r.t.Helper()
	if at := r.scrapes[instance]; len(at) == 0 || at[len(at)-1] < minute {
		r.scrapes[instance] = append(at, minute)
	}
	r.note(minute, instance, "up", nil, up(page), false)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(r.only(page)))
	if err != nil {
		r.t.Fatalf("the page of %s: %v", instance, err)
	}
	for name, f := range families {
		for _, m := range f.Metric {
			r.note(minute, instance, name, m.Label, r.value(name, f.GetType(), m), f.GetType() == dto.MetricType_COUNTER)
		}
	}
}

// only returns the wanted metrics of a page.
func (r *recording) only(page []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(page) {
		name := bytes.TrimPrefix(line, []byte("# TYPE "))
		if end := bytes.IndexAny(name, "{ "); end > 0 && r.wanted[string(name[:end])] {
			kept = append(kept, line...)
		}
	}
	return kept
}

// leave ends the scrapes of an instance.
func (r *recording) leave(instance string) {
	r.scrapes[instance] = append(r.scrapes[instance], r.minute()+1)
}

// up returns the value of the metric up after a scrape.
func up(page []byte) float64 {
	if page == nil {
		return 0
	}
	return 1
}

// value returns the value of a metric. promtool's clock starts at 0 with the recording, so times are relative to that.
func (r *recording) value(name string, kind dto.MetricType, m *dto.Metric) float64 {
	r.t.Helper()
	switch kind {
	case dto.MetricType_COUNTER:
		return m.GetCounter().GetValue()
	case dto.MetricType_GAUGE:
		if strings.HasSuffix(name, "_timestamp_seconds") {
			return m.GetGauge().GetValue() - float64(r.began.UnixMilli())/1000
		}
		return m.GetGauge().GetValue()
	}
	r.t.Fatalf("%s is a %s: the recording cannot play those", name, kind)
	return 0
}

func (r *recording) note(minute int, instance, name string, labels []*dto.LabelPair, value float64, counter bool) {
	text := fmt.Sprintf("%s{job=%q, instance=%q", name, job, instance)
	for _, l := range labels {
		label := l.GetName()
		if label == "job" || label == "instance" {
			label = "exported_" + label // as without honor_labels
		}
		text += fmt.Sprintf(", %s=%q", label, l.GetValue())
	}
	text += "}"
	s := r.series[text]
	if s == nil {
		s = &series{instance: instance, text: text, counter: counter, values: map[int]float64{}}
		r.series[text] = s
	}
	s.values[minute] = value
}

// inputSeries is a series in a promtool test.
type inputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

// play returns the recording up to a minute, in promtool's form.
func (r *recording) play(last int) (all []inputSeries) {
	for _, text := range slices.Sorted(maps.Keys(r.series)) {
		s := r.series[text]
		samples := s.samples(r.scrapes[s.instance], last)
		var kept []string
		for i := 0; i <= last; i += r.step() {
			kept = append(kept, samples[i])
		}
		all = append(all, inputSeries{s.text, notation(kept)})
	}
	return all
}

// The samples without a value: of a missing series, and of a series that was there a scrape before.
const (
	missing = "_"
	stale   = "stale"
)

// samples returns the samples of each minute. Between two scrapes, a gauge keeps its value, and a counter grows evenly.
func (s *series) samples(scrapes []int, last int) []string {
	out := make([]string, last+1)
	for i := range out {
		out[i] = missing
	}
	for i, at := range scrapes {
		next := last + 1
		if i+1 < len(scrapes) {
			next = scrapes[i+1]
		}
		value, there := s.values[at]
		if !there {
			if i > 0 && out[at-1] != missing {
				out[at] = stale
			}
			continue
		}
		step := 0.0
		if later, ok := s.values[next]; ok && s.counter && later > value {
			step = (later - value) / float64(next-at)
		}
		for m := at; m < next && m <= last; m++ {
			out[m] = strconv.FormatFloat(value+step*float64(m-at), 'f', -1, 64)
		}
	}
	return out
}

// last returns the last value of a series.
func (r *recording) last(text string) float64 {
	r.t.Helper()
	s := r.series[text]
	if s == nil {
		r.t.Fatalf("there is no series %s", text)
	}
	return s.values[slices.Max(slices.Collect(maps.Keys(s.values)))]
}

// notation writes samples with run-length encoding.
func notation(samples []string) string {
	var parts []string
	for i := 0; i < len(samples); {
		n := 1
		for i+n < len(samples) && samples[i+n] == samples[i] && samples[i] != stale {
			n++
		}
		switch {
		case samples[i] == missing:
			parts = append(parts, fmt.Sprintf("_x%d", n))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%s+0x%d", samples[i], n-1))
		default:
			parts = append(parts, samples[i])
		}
		i += n
	}
	return strings.Join(parts, " ")
}
