//! What a row of the table becomes: the implementations for its request, and its place in the list of all.

/// The most bytes of a request in JSON, unless its row says otherwise.
macro_rules! body_max {
    () => {
        BODY_MAX
    };
    ($most:ident) => {
        $most
    };
}

macro_rules! operations {
    ($(
        $request:ident $name:literal $method:ident $route:literal => $response:ty,
            $who:ident $scope:ident $effect:ident $lane:ident $(up to $most:ident)?,
            $vault:expr, $handler:expr,
            $sentence:literal;
    )*) => {
        $(
            impl Operation for $request {
                const ROW: Row = Row {
                    name: $name,
                    method: Method::$method,
                    route: $route,
                    who: Who::$who,
                    scope: Scope::$scope,
                    effect: Effect::$effect,
                    vault: <$request as Served>::VAULT.kind(),
                    lane: $lane,
                    body_max: body_max!($($most)?),
                    sentence: $sentence,
                };
                type Response = $response;
            }

            impl Served for $request {
                const VAULT: VaultOf<$request> = {
                    use VaultOf::*;
                    $vault
                };
                const HANDLER: Handler<$request> = {
                    use Handler::*;
                    $handler
                };
            }
        )*

        /// Every operation.
        pub const OPERATIONS: &[Row] = &[$(<$request as Operation>::ROW),*];

        /// Calls the visitor for every row.
        pub(crate) fn each_row(visitor: &mut impl EachRow) {
            $(visitor.row::<$request>();)*
        }
    };
}
