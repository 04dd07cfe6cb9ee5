package realhost

// difference describes different answers of the hosts to one request.
type difference struct {
	real, local int // the statuses
	why         string
}

// Reasons that several requests share.
const (
	netHTTP = "net/http refuses what is no HTTP before the local host sees it, with a text"
	origin  = "the local host is for its own machine: it refuses what pages of other origins could have a browser send"
	files   = "the real host names files that it serves itself, for the portal"
	landing = "a page of 150 kB about Azure helps nobody at a terminal"
)

// differences lists the requests that the hosts may answer differently, by name. A request with equal answers may not
// be listed.
var differences = map[string]difference{
	"landing page":                        {200, 200, landing},
	"method: post of the landing page":    {200, 200, landing},
	"method: head of the landing page":    {200, 200, landing},
	"preflight":                           {404, 403, origin},
	"header: origin of its own":           {403, 403, origin},
	"admin: status":                       {200, 200, "the real host names the commit that it was built from"},
	"admin: functions":                    {200, 200, files},
	"admin: function":                     {200, 200, files},
	"admin: function in other letters":    {200, 200, files},
	"route: a bad escape":                 {404, 400, netHTTP},
	"route: a lone percent sign":          {404, 400, netHTTP},
	"wire: two hosts":                     {400, 400, netHTTP},
	"wire: HTTP/3.0":                      {505, 505, netHTTP},
	"wire: no path":                       {400, 400, netHTTP},
	"wire: a blank in the path":           {400, 400, netHTTP},
	"wire: a header without a colon":      {400, 400, netHTTP},
	"wire: a blank before the colon":      {400, 400, netHTTP},
	"wire: length that is none":           {400, 400, netHTTP},
	"wire: two lengths":                   {400, 400, netHTTP},
	"wire: an encoding that nobody knows": {400, 501, netHTTP},
}
