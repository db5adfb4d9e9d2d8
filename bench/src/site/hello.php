<?php echo str_repeat('.', 128);
