package console

import (
	"net/url"
	"time"
)

// maxBacklogRows bounds the rows of the backlog on the page; the API has more.
const maxBacklogRows = 20

// backlogList is the pending events by tenant and destination, most first.
type backlogList struct {
	Items []backlogItem `json:"items"`
	More  bool          `json:"more"`
}

func (l backlogList) empty() bool { return len(l.Items) == 0 }

// Rows returns the displayed rows.
func (l backlogList) Rows() []backlogItem { return l.Items[:min(len(l.Items), maxBacklogRows)] }

// Left returns the number of omitted rows.
func (l backlogList) Left() int { return len(l.Items) - len(l.Rows()) }

// backlogItem is the pending events of one tenant for one destination, "" without a route.
type backlogItem struct {
	TenantID    Text      `json:"tenantId"`
	Destination Text      `json:"destination"`
	Waiting     int       `json:"waiting"`
	Failed      int       `json:"failed"`
	AtLeast     bool      `json:"atLeast"`
	OldestAt    time.Time `json:"oldestAtUtc"`
}

// Link returns the address of the tenant's pending events.
func (b backlogItem) Link() string {
	return address(outboxPath, url.Values{"status": {"pending"}, "tenant": {string(b.TenantID)}})
}

// circuitList are the destinations with open circuits.
type circuitList struct {
	Items []circuitItem `json:"items"`
}

func (l circuitList) empty() bool { return len(l.Items) == 0 }

// circuitItem is a destination to which some nodes send nothing for a while.
type circuitItem struct {
	Destination Text          `json:"destination"`
	Since       time.Time     `json:"sinceUtc"`
	Until       time.Time     `json:"untilUtc"`
	Nodes       []circuitNode `json:"nodes"`
	Left        int           `json:"nodesLeftOut"`
}

// circuitNode is such a node with its report.
type circuitNode struct {
	Node     Text      `json:"node"`
	Failures int       `json:"failures"`
	Reason   Text      `json:"reason"`
	Seen     time.Time `json:"seenUtc"`
}
