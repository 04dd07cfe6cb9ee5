package dashboards

import "fmt"

// The uids of the dashboards, which are their names in addresses of Grafana, and those of their files.
const (
	overviewUID = "roundhouse-overview"
	engineUID   = "roundhouse-engine"
	outboxUID   = "roundhouse-outbox-and-pollers"
	runtimeUID  = "roundhouse-runtime"
)

// Files are all dashboards, by the name of their file.
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
