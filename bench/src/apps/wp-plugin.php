<?php

/** Plain links on all servers: which kind WordPress chooses depends on the server that it was installed on. */

add_filter('pre_option_permalink_structure', static fn (): string => '');
