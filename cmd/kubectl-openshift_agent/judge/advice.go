package judge

import (
	_ "embed" // the advice
	"encoding/json"
	"fmt"
	"sync"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// Advice is what the documentation states about a reason.
type Advice struct {
	// Text is the meaning of the reason and the action of the user.
	Text string `json:"text"`
	// Pages are further pages of the documentation, relative to the top of the repository.
	Pages []string `json:"pages,omitempty"`
}

// advice.json is generated from docs/conditions.md by make generate.
//
//go:embed advice.json
var adviceJSON []byte

// advice is by kind and reason.
var advice = sync.OnceValue(func() map[string]map[string]Advice {
	parsed := map[string]map[string]Advice{}
	if err := json.Unmarshal(adviceJSON, &parsed); err != nil {
		panic(fmt.Sprintf("advice.json of this program: %v", err))
	}
	return parsed
})

// AdviceFor returns the documentation of the reason of a cause; false if there is none.
func AdviceFor(c *Cause) (Advice, bool) {
	kind := c.Object.Kind
	if kind == snapshot.KindMachine { // the control plane provider writes conditions of Machines
		kind = snapshot.KindControlPlane
	}
	found, documented := advice()[kind][c.Reason]
	return found, documented
}
