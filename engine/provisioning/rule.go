package provisioning

import (
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/services/marketplace"
)

// Action is an action of the marketplace, or the event and state of a managed application.
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

// rule defines when an action is valid and its effect on an instance, by the state of the instance. The rules and
// their exceptions are the table of docs/engines/provisioning.md, which a test checks.
type rule struct {
	action Action
	// during are the states of the subscription, or of the application, in which the action is valid.
	during []string
	// then is the effect, unless except has another one for the state of the instance.
	then   effect
	except map[State]effect
}

// effect is the effect of a rule on the state of an instance.
type effect string

// The effects: a State sets that state, and these do not.
const (
	// bootstrap sets StateProvisioning until the instance has answered the bootstrap command.
	bootstrap effect = "bootstrap"
	// keep leaves the state as it is; plan and quantity follow the notice.
	keep effect = "keep"
	// skip changes nothing and sends no command.
	skip effect = "skip"
)

// stateless is the state of an instance that is not registered.
const stateless State = ""

// rules returns all known actions, in their own spelling. A running instance leaves StateActive only by an action
// that ends, suspends or fails it: a repeated announcement keeps it.
func rules() []rule {
	subscribed, suspended := string(marketplace.Subscribed), string(marketplace.Suspended)
	active := effect(StateActive)
	// A change of an unknown instance registers it as active: it was sold before this registry existed.
	changed := map[State]effect{stateless: active, StateRemoving: skip, StateRemoved: skip}
	ended := map[State]effect{stateless: skip}
	return []rule{
		// The marketplace sends Subscribe at a purchase, and again when the subscription is renewed.
		{action: Subscribe, during: []string{string(marketplace.PendingFulfillmentStart), subscribed}, then: bootstrap,
			except: map[State]effect{StateActive: keep, StateSuspended: active}},
		{action: ChangePlan, during: []string{subscribed}, then: keep, except: changed},
		{action: ChangeQuantity, during: []string{subscribed}, then: keep, except: changed},
		{action: Renew, during: []string{subscribed}, then: keep, except: changed},
		{action: Suspend, during: []string{suspended}, then: effect(StateSuspended),
			except: map[State]effect{StateRemoving: skip, StateRemoved: skip}},
		// The marketplace reinstates when the operation is acknowledged. A payment does not start an instance.
		{action: Reinstate, during: []string{suspended, subscribed}, then: active,
			except: map[State]effect{StateProvisioning: keep, StateFailed: keep, StateRemoving: skip, StateRemoved: skip}},
		{action: Unsubscribe, during: []string{string(marketplace.Unsubscribed)}, then: effect(StateRemoved), except: ended},

		// Deploying an application again does not stop the instance, even if the deployment fails.
		{action: "PUT Accepted", during: []string{"Accepted", "Created", "Creating", "Running", "Ready"}, then: effect(StateProvisioning),
			except: map[State]effect{StateActive: keep, StateSuspended: keep}},
		{action: "PUT Succeeded", during: []string{"Succeeded"}, then: bootstrap,
			except: map[State]effect{StateActive: keep, StateSuspended: keep}},
		{action: "PUT Failed", during: []string{"Failed", "Canceled"}, then: effect(StateFailed),
			except: map[State]effect{StateActive: keep, StateSuspended: keep}},
		{action: "PATCH Succeeded", during: []string{"Succeeded"}, then: keep, except: changed},
		{action: "DELETE Deleting", during: []string{"Deleting"}, then: effect(StateRemoving),
			except: map[State]effect{stateless: skip, StateRemoved: skip}},
		{action: "DELETE Deleted", during: []string{gone, "Deleted"}, then: effect(StateRemoved), except: ended},
		{action: "DELETE Failed", during: []string{"Failed"}, then: effect(StateFailed)},
	}
}

// on returns the effect on an instance in a state.
func (r rule) on(s State) effect {
	if e, ok := r.except[s]; ok {
		return e
	}
	return r.then
}

// gone is the state of an application that does not exist.
const gone = ""

// ruleOf finds the rule of an action, in any letter case.
func ruleOf(a Action) (rule, error) {
	for _, r := range rules() {
		if strings.EqualFold(string(r.action), string(a)) {
			return r, nil
		}
	}
	return rule{}, fmt.Errorf("the action %.64q is not known", string(a))
}

// holds reports whether the action is valid in a state.
func (r rule) holds(state string) bool {
	for _, s := range r.during {
		if strings.EqualFold(s, state) {
			return true
		}
	}
	return false
}
