package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/metal3-io/baremetal-operator/pkg/provisioner"
	"github.com/metal3-io/baremetal-operator/pkg/provisioner/fixture"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// again is the interval at which a machine is queried until it is done.
	again = 250 * time.Millisecond
	// patience is how long a machine may take for an answer.
	patience = 30 * time.Second
)

// machines contains the URL at which the machines of all BareMetalHosts are queried: <url>/<namespace>/<name>/<task>.
type machines struct {
	url    string
	client http.Client

	mu sync.Mutex
	// tests are the states of the test mode, one for each BareMetalHost: firmware, subscriptions and data images are its business.
	tests map[types.UID]*fixture.Fixture
}

func newMachines(url string) *machines {
	return &machines{url: url, client: http.Client{Timeout: patience}, tests: map[types.UID]*fixture.Fixture{}}
}

// NewProvisioner implements [provisioner.Factory].
func (m *machines) NewProvisioner(ctx context.Context, host provisioner.HostData,
	publish provisioner.EventPublisher,
) (provisioner.Provisioner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := host.ObjectMeta.UID
	if m.tests[uid] == nil {
		m.tests[uid] = &fixture.Fixture{}
	}
	test, err := m.tests[uid].NewProvisioner(ctx, host, publish)
	if err != nil {
		return nil, err
	}
	return &machine{Provisioner: test, machines: m, host: host}, nil
}

// The tasks of a machine, order and answer are those of test/hosts (bmc.go).
const (
	register    = "register"
	inspect     = "inspect"
	prepare     = "prepare"
	provision   = "provision"
	deprovision = "deprovision"
	power       = "power"
	look        = "look"
)

// order is what a machine is to do a task with.
type order struct {
	Image    metal3api.Image `json:"image"`
	UserData string          `json:"userData,omitempty"`
	Clean    bool            `json:"clean,omitempty"`
	On       bool            `json:"on,omitempty"`
}

// answer is the response of a machine.
type answer struct {
	ID        string                     `json:"id"`
	PoweredOn bool                       `json:"poweredOn"`
	Details   *metal3api.HardwareDetails `json:"details,omitempty"`
	// Busy: it is not done yet. Failure: why it cannot be.
	Busy    bool   `json:"busy,omitempty"`
	Failure string `json:"failure,omitempty"`
}

func (a answer) result() provisioner.Result {
	if a.Busy {
		return provisioner.Result{Dirty: true, RequeueAfter: again}
	}
	return provisioner.Result{ErrorMessage: a.Failure}
}

// machine is that of one BareMetalHost.
type machine struct {
	provisioner.Provisioner

	machines *machines
	host     provisioner.HostData
}

func (m *machine) query(ctx context.Context, task string, o order) (answer, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	url := fmt.Sprintf("%s/%s/%s/%s", m.machines.url, m.host.ObjectMeta.Namespace, m.host.ObjectMeta.Name, task)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	response, err := m.machines.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return answer{}, errors.New(response.Status + ": " + string(text))
	}
	var a answer
	err = json.NewDecoder(response.Body).Decode(&a)
	return a, err
}

// Register implements [provisioner.Provisioner], as all that follow.
func (m *machine) Register(ctx context.Context, _ provisioner.ManagementAccessData, _, _ bool) (provisioner.Result, string, error) {
	a, err := m.query(ctx, register, order{})
	return a.result(), a.ID, err
}

func (m *machine) InspectHardware(ctx context.Context, _ provisioner.InspectData, _, refresh, _ bool) (provisioner.Result,
	bool, *metal3api.HardwareDetails, error,
) {
	a, err := m.query(ctx, inspect, order{})
	return a.result(), refresh, a.Details, err
}

func (m *machine) UpdateHardwareState(ctx context.Context) (provisioner.HardwareState, error) {
	a, err := m.query(ctx, look, order{})
	return provisioner.HardwareState{PoweredOn: &a.PoweredOn}, err
}

// Adopt has no effect: a machine does not depend on its client.
func (m *machine) Adopt(context.Context, provisioner.AdoptData, bool) (provisioner.Result, error) {
	return provisioner.Result{}, nil
}

func (m *machine) Prepare(ctx context.Context, _ provisioner.PrepareData, unprepared, _ bool) (provisioner.Result, bool, error) {
	a, err := m.query(ctx, prepare, order{})
	return a.result(), unprepared, err
}

func (m *machine) Provision(ctx context.Context, data provisioner.ProvisionData, _ bool) (provisioner.Result, error) {
	userData, err := data.HostConfig.UserData(ctx)
	if err != nil {
		return provisioner.Result{}, fmt.Errorf("cannot read the user data: %w", err)
	}
	a, err := m.query(ctx, provision, order{Image: data.Image, UserData: userData})
	return a.result(), err
}

func (m *machine) Deprovision(ctx context.Context, _ bool, cleaning metal3api.AutomatedCleaningMode) (provisioner.Result, error) {
	a, err := m.query(ctx, deprovision, order{Clean: cleaning != metal3api.CleaningModeDisabled})
	return a.result(), err
}

func (m *machine) PowerOn(ctx context.Context, _ bool) (provisioner.Result, error) {
	return m.switchPower(ctx, true)
}

func (m *machine) PowerOff(ctx context.Context, _ metal3api.RebootMode, _ bool,
	_ metal3api.AutomatedCleaningMode,
) (provisioner.Result, error) {
	return m.switchPower(ctx, false)
}

// switchPower reports a change as dirty, so that the operator reconciles again.
func (m *machine) switchPower(ctx context.Context, on bool) (provisioner.Result, error) {
	before, err := m.query(ctx, look, order{})
	if err != nil || before.PoweredOn == on {
		return provisioner.Result{}, err
	}
	a, err := m.query(ctx, power, order{On: on})
	result := a.result()
	result.Dirty = result.ErrorMessage == ""
	return result, err
}

// Delete leaves the machine as it is, as Detach does.
func (m *machine) Delete(context.Context) (provisioner.Result, error) {
	m.machines.mu.Lock()
	defer m.machines.mu.Unlock()
	delete(m.machines.tests, m.host.ObjectMeta.UID)
	return provisioner.Result{}, nil
}

func (m *machine) Detach(ctx context.Context, _ bool) (provisioner.Result, error) {
	return m.Delete(ctx)
}
