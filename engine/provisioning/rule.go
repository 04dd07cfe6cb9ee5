package provisioning

import (
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/services/marketplace"
)

// Action is what has happened: an action of the marketplace, or event and state of a managed application.
type Action string

// The actions of the marketplace.
const (
	Subscribe      Action = "Subscribe"
	Unsubscribe    Action = "Unsubscribe"
	ChangePlan     Action = "ChangePlan"
	ChangeQuantity Action = "ChangeQuantity"
	Renew          Action = "Renew"
	Suspend        Action = "Suspend"
	Reinstate      Action = "Reinstate"
)

// rule says when an action holds and what it leads to.
type rule struct {
	action Action
	// during are the states of the subscription, or of the application, in which the action holds.
	during []string
	// state is that of the instance afterwards; "" leaves it as it is.
	state State
	// bootstrap says that the instance has to come up before that.
	bootstrap bool
}

// rules are all actions that the engine knows, in their own spelling.
func rules() []rule {
	subscribed, suspended := string(marketplace.Subscribed), string(marketplace.Suspended)
	return []rule{
		{action: Subscribe, during: []string{string(marketplace.PendingFulfillmentStart), subscribed}, state: StateActive, bootstrap: true},
		{action: ChangePlan, during: []string{subscribed}},
		{action: ChangeQuantity, during: []string{subscribed}},
		{action: Renew, during: []string{subscribed}},
		{action: Suspend, during: []string{suspended}, state: StateSuspended},
		// The marketplace reinstates when the operation is acknowledged.
		{action: Reinstate, during: []string{suspended, subscribed}, state: StateActive},
		{action: Unsubscribe, during: []string{string(marketplace.Unsubscribed)}, state: StateRemoved},

		{action: "PUT Accepted", during: []string{"Accepted", "Created", "Creating", "Running", "Ready"}, state: StateProvisioning},
		{action: "PUT Succeeded", during: []string{"Succeeded"}, state: StateActive, bootstrap: true},
		{action: "PUT Failed", during: []string{"Failed", "Canceled"}, state: StateFailed},
		{action: "PATCH Succeeded", during: []string{"Succeeded"}},
		{action: "DELETE Deleting", during: []string{"Deleting"}, state: StateRemoving},
		{action: "DELETE Deleted", during: []string{gone, "Deleted"}, state: StateRemoved},
		{action: "DELETE Failed", during: []string{"Failed"}, state: StateFailed},
	}
}

// gone is the state of an application that is not there.
const gone = ""

// ruleOf finds the rule of an action, whatever its letter case.
func ruleOf(a Action) (rule, error) {
	for _, r := range rules() {
		if strings.EqualFold(string(r.action), string(a)) {
			return r, nil
		}
	}
	return rule{}, fmt.Errorf("the action %.64q is not known", string(a))
}

// holds says whether the action does in a state.
func (r rule) holds(state string) bool {
	for _, s := range r.during {
		if strings.EqualFold(s, state) {
			return true
		}
	}
	return false
}
