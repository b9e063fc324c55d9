// Command etcd is the etcd server. It exists because etcd's own main package belongs to a module that is not
// published with the others; the server is the same.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
