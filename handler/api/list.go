package api

// list is the data of a list.
type list[T any] struct {
	Items []T `json:"items"`
	// ContinuationToken is omitted on the last page.
	ContinuationToken string `json:"continuationToken,omitempty"`
}

// listOf converts rows to items; no rows yield an empty array.
func listOf[Row, Item any](rows []Row, token string, item func(Row) Item) list[Item] {
	l := list[Item]{Items: make([]Item, 0, len(rows)), ContinuationToken: token}
	for _, row := range rows {
		l.Items = append(l.Items, item(row))
	}
	return l
}
