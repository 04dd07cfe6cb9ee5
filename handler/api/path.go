package api

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// canonicalPaths puts a path that matches a resource in any letter case into the case of its route. Echo's router
// then sees percent-encoded paths only (left alone, it sees decoded ones whenever nothing is lost by that), so
// parameters can be decoded once, for any content.
func canonicalPaths(resources []resource) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			u := c.Request().URL
			segments := strings.Split(strings.TrimSuffix(u.EscapedPath(), "/"), "/")
			if len(segments) < 2 || !strings.EqualFold(segments[1], "api") {
				return next(c)
			}
			segments[1] = "api"
			for _, r := range resources {
				if canonical, ok := matched(strings.Split(r.path, "/"), segments); ok {
					segments = canonical
					break
				}
			}
			escaped := strings.Join(segments, "/")
			path, err := url.PathUnescape(escaped)
			if err != nil {
				return next(c) // unreachable unless EscapedPath returns an undecodable path
			}
			u.Path, u.RawPath = path, escaped
			return next(c)
		}
	}
}

// matched returns the segments in the case of a route, if they match it.
func matched(route, segments []string) ([]string, bool) {
	if len(route) != len(segments) {
		return nil, false
	}
	canonical := make([]string, len(route))
	for i, word := range route {
		switch {
		case strings.HasPrefix(word, ":"):
			canonical[i] = segments[i]
		case strings.EqualFold(word, segments[i]):
			canonical[i] = word
		default:
			return nil, false
		}
	}
	return canonical, true
}
