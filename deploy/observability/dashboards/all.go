package dashboards

import "fmt"

// The UIDs of the dashboards: their names in Grafana's addresses and the names of their files.
const (
	overviewUID = "roundhouse-overview"
	engineUID   = "roundhouse-engine"
	outboxUID   = "roundhouse-outbox-and-pollers"
	runtimeUID  = "roundhouse-runtime"
)

// Files returns all dashboards by file name.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, b := range []board{overview(), engine(), outboxAndPollers(), runtime()} {
		text, err := b.json()
		if err != nil {
			return nil, fmt.Errorf("make the dashboard %s: %w", b.uid, err)
		}
		files[b.uid+".json"] = text
	}
	return files, nil
}
