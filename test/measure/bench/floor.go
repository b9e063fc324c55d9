package bench

import (
	"context"
	"net/http"
	"strconv"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
)

// floors are programs that watch what the managers watch, and do nothing (package floor). They show what a manager
// costs at least.
type floors map[string]*process.Process

// startFloors starts a floor for each manager.
func (b *bench) startFloors(ctx context.Context) error {
	program, err := b.lab.Env.Components().Program(ctx, components.Floor())
	if err != nil {
		return err
	}
	b.floors = floors{}
	group := b.lab.Env.Group()
	for _, name := range managers.Names {
		port, err := group.Port()
		if err != nil {
			return err
		}
		address := "127.0.0.1:" + strconv.Itoa(port)
		floor := group.New("floor-"+name, process.Clients, program, "-kinds="+name, "-health="+address)
		floor.Env = []string{"KUBECONFIG=" + b.lab.Env.Kubeconfig()}
		floor.Ready = process.Probe(http.DefaultClient, "http://"+address+"/readyz")
		if err := group.Start(ctx, floor); err != nil {
			return err
		}
		b.floors[name] = floor
	}
	return nil
}

func (b *bench) stopFloors() {
	for _, floor := range b.floors {
		floor.Stop()
	}
	b.floors = nil
}

// usage returns the resources that each floor has used.
func (f floors) usage() (map[string]process.Usage, error) {
	used := map[string]process.Usage{}
	for name, floor := range f {
		usage, err := floor.Usage()
		if err != nil {
			return nil, err
		}
		used[name] = usage
	}
	return used, nil
}
