package console

import (
	"net/url"
	"time"
)

// maxBacklogRows bounds how many rows of the backlog the page has; the API has more.
const maxBacklogRows = 20

// backlogList is what waits in the outbox, by tenant and destination, most first.
type backlogList struct {
	Items []backlogItem `json:"items"`
	More  bool          `json:"more"`
}

func (l backlogList) empty() bool { return len(l.Items) == 0 }

// Rows are those that the page shows.
func (l backlogList) Rows() []backlogItem { return l.Items[:min(len(l.Items), maxBacklogRows)] }

// Left is how many rows are left out.
func (l backlogList) Left() int { return len(l.Items) - len(l.Rows()) }

// backlogItem is what waits of one tenant for one destination, "" without a route.
type backlogItem struct {
	TenantID    Text      `json:"tenantId"`
	Destination Text      `json:"destination"`
	Waiting     int       `json:"waiting"`
	Failed      int       `json:"failed"`
	AtLeast     bool      `json:"atLeast"`
	OldestAt    time.Time `json:"oldestAtUtc"`
}

// Link is the address of the events of the tenant that wait.
func (b backlogItem) Link() string {
	return address(outboxPath, url.Values{"status": {"pending"}, "tenant": {string(b.TenantID)}})
}

// circuitList are the destinations that are held back.
type circuitList struct {
	Items []circuitItem `json:"items"`
}

func (l circuitList) empty() bool { return len(l.Items) == 0 }

// circuitItem is a destination that some nodes send nothing to for a while.
type circuitItem struct {
	Destination Text          `json:"destination"`
	Since       time.Time     `json:"sinceUtc"`
	Until       time.Time     `json:"untilUtc"`
	Nodes       []circuitNode `json:"nodes"`
	Left        int           `json:"nodesLeftOut"`
}

// circuitNode is a node that does so, as it said of itself.
type circuitNode struct {
	Node     Text      `json:"node"`
	Failures int       `json:"failures"`
	Reason   Text      `json:"reason"`
	Seen     time.Time `json:"seenUtc"`
}
