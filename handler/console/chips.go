package console

import "net/url"

// filterName is a filter of a list: Param is its name in the address, and Label its label.
type filterName struct{ Param, Label string }

// filterChip is a filter in use; Without is the address of the list without it.
type filterChip struct {
	Name    string
	Value   Text
	Without string
}

// chipsOf returns the filters of a list that are in use, in the order of their names. kept are the parameters of its
// address that are not filters.
func chipsOf(path string, names []filterName, values, kept url.Values) (chips []filterChip) {
	for _, name := range names {
		value := values.Get(name.Param)
		if value == "" {
			continue
		}
		rest := url.Values{}
		for _, from := range []url.Values{kept, values} {
			for other, all := range from {
				if other != name.Param {
					rest[other] = all
				}
			}
		}
		chips = append(chips, filterChip{name.Label, Text(value), address(path, rest)})
	}
	return chips
}

// Chips returns the filters of dead letters in use.
func (p lettersPage) Chips() []filterChip { return p.Filter.chips(lettersPath) }

// Chips returns the same by cause.
func (p causesPage) Chips() []filterChip { return p.Filter.chips(causesPath) }

// chips returns the filters in use. The default status, pending, does not count.
func (f filter) chips(path string) []filterChip {
	values := f.values
	if f.Status == "Pending" {
		values = f.without("status")
	}
	return chipsOf(path, []filterName{{"status", "Status"}, {"engine", "Engine"}, {"instanceId", "Instance"}, {"correlationId", "Correlation id"}, {"errorSignature", "Cause"}, {"assignee", "Taken by"},
		{"fromDate", "Failed from"}, {"toDate", "Failed until"}}, values, nil)
}

// Chips returns the filters of tasks in use that the view has.
func (f taskFilter) Chips() []filterChip {
	names := []filterName{{"role", "Role"}, {"engine", "Engine"}, {"tenantId", "Tenant"}, {"dueBefore", "Due before"}}
	if f.All() {
		names = append([]filterName{{"status", "Status"}, {"assignee", "Who has it"}}, names...)
	}
	values := url.Values{}
	for name, all := range f.values {
		if name != "status" || f.Status != openStatus {
			values[name] = all
		}
	}
	return chipsOf(tasksPath, names, values, url.Values{"view": {f.View}})
}

// Chips returns the filters of events in use.
func (f eventFilter) Chips() []filterChip {
	return chipsOf(outboxPath, []filterName{{"status", "Status"}, {"tenant", "Tenant"}, {"eventType", "Event type"}, {"correlationId", "Correlation id"}, {"fromDate", "Published from"}, {"toDate", "Published until"}}, f.values, nil)
}

// Chips returns the filters of operations in use.
func (f operationFilter) Chips() []filterChip {
	return chipsOf(operationsPath, []filterName{{"status", "Status"}, {"by", "By"}}, f.query(""), nil)
}

// Chips returns the filters of the audit log in use.
func (p auditPage) Chips() []filterChip {
	return chipsOf(auditPath, []filterName{{"target", "Target"}, {"principal", "Who"}, {"fromDate", "From"}, {"toDate", "Until"}},
		url.Values{"target": {p.Target}, "principal": {p.Principal}, "fromDate": {p.From}, "toDate": {p.To}}, nil)
}

// Chips returns the filters of instances in use.
func (p registryPage) Chips() []filterChip {
	locked := map[string]string{"true": "held", "false": "free"}[p.Locked]
	chips := chipsOf(registryPath, []filterName{{"tenantId", "Tenant"}, {"ring", "Ring"}, {"locked", "Lock"}},
		url.Values{"tenantId": {p.Tenant}, "ring": {p.Ring}, "locked": {p.Locked}}, nil)
	if last := len(chips) - 1; last >= 0 && locked != "" {
		chips[last].Value = Text(locked)
	}
	return chips
}

// Chips returns the filters of orchestrations in use.
func (p orchestrationsPage) Chips() []filterChip {
	var names []filterName
	for _, field := range orchestrationFields() {
		names = append(names, filterName{field.Param, field.Label})
	}
	return chipsOf(orchestrationsPath, names, p.Filter.values, url.Values{"columns": {p.ColumnsParam()}})
}
