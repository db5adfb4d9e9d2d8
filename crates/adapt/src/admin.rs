//! The admin API's address, and who may call it.

use crate::Writer;
use crate::object::Object;
use crate::server::with_port;
use regent_config::{Admin, AdminListen, OriginCheck, Persistence};

/// Of its socket, where nothing is said.
const MODE: u32 = 0o600;

impl Writer<'_> {
    pub(crate) fn admin(&self) -> Object {
        let global = &self.config.global;
        let mut object = Object::new();
        match &global.admin {
            None => object.set("disabled", true),
            Some(Admin { listen, origins, origin_check }) => {
                if *listen != Admin::default().listen {
                    object.set("listen", address(listen));
                }
                object.set_list("origins", origins.iter().cloned());
                object.set_if("enforce_origin", *origin_check == OriginCheck::Everyone);
            }
        }
        if global.persistence == Persistence::Off {
            let mut config = Object::new();
            config.set("persist", false);
            object.set("config", config);
        }
        object
    }
}

fn address(listen: &AdminListen) -> String {
    match listen {
        AdminListen::Tcp { host, port } => with_port(host, *port),
        AdminListen::Unix { path, mode: MODE } => format!("unix/{}", path.display()),
        AdminListen::Unix { path, mode } => format!("unix/{}|{mode:04o}", path.display()),
    }
}
