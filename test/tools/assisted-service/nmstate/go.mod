// Stands for nmstate's Go binding, which needs its C library: few machines have that.
module github.com/nmstate/nmstate/rust/src/go/nmstate

go 1.26.0
